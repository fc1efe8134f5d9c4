// Package natslog keeps the log of a replicated store on NATS JetStream: it is a [replica.Log] that
// three servers hold, and that outlives one of them.
//
//	js, err := jetstream.New(nc)                                            // nc: servers, login and TLS are the caller's
//	err = natslog.Create(ctx, js, "WORLDS", natslog.Options{})              // once
//	log, err := natslog.Open(ctx, js, "WORLDS", "europe", natslog.Options{})
//	f, err := replica.Follow(ctx, log, files, replica.Options{})
//
// A world is a subject of a stream, and an entry is a message of it; a position is the sequence of
// the message in the stream. So a stream has one world or thousands, and positions have gaps where
// entries of other worlds lie.
//
// An entry is appended on condition that the last message of the subject is the one expected, and
// under an ID of its own. If no answer comes it is sent again: the server knows the ID and answers
// with the sequence that it gave the first time, or, when it has forgotten the ID, refuses it as
// the subject has ended elsewhere since, and what lies there tells whose it is.
//
// # What the servers must be set to
//
//	nats-server 2.15 or newer, three of them in a cluster
//	jetstream { sync_interval: always }     otherwise a message is acknowledged up to two minutes before it is on disk
//	nats stream add WORLDS --subjects 'WORLDS.>' --storage file --replicas 3 --retention limits --allow-direct --max-consumers 100000
//
// with no limit of age, number or size that lets go of messages. [Open] refuses a stream that is
// not so. How servers sync is told to the system account only: [CheckServers] asks them.
//
// The directory examples/cluster has the files of such a cluster, with logins and a place for TLS.
//
// # Many worlds
//
// A follower reads what is there by batches that any server answers, at most 2 MiB ahead, and makes
// a consumer when it waits for more. So worlds that recover need none. A world that is followed has
// one; servers allow 1,000 for a stream unless it is made with more, as [Create] does. When the
// stream has no consumer left, a follower asks four times a second instead. On a stream without
// --allow-direct, all reading needs a consumer.
//
// # What a login needs
//
// To follow WORLDS.europe, a login publishes requests and reads the answers below _INBOX:
//
//	$JS.API.STREAM.INFO.WORLDS
//	$JS.API.STREAM.MSG.GET.WORLDS
//	$JS.API.CONSUMER.CREATE.WORLDS.*.WORLDS.europe
//	$JS.API.CONSUMER.MSG.NEXT.WORLDS.*
//	$JS.API.DIRECT.GET.WORLDS                      optional: recovery without a consumer
//	$JS.API.CONSUMER.DELETE.WORLDS.*               optional: a reader that ends removes its consumer
//
// To own it, WORLDS.europe and $JS.API.STREAM.PURGE.WORLDS too. The second request above and direct
// ones read any world of the stream, and a purge removes any: worlds that must not see each other
// have streams of their own. Without the last right, each reader that ends causes one error in the
// handler of its connection at most, and servers remove its consumer after 10 s. A request that is
// not permitted is not answered; the error of the call says which right is missing.
//
// # When an operator must act
//
// Errors that stay are [replica.ErrOperator], and say what to do: the stream was removed, is full,
// sealed or takes only small messages; JetStream is disabled for the account; the login lacks a
// right; its credentials or a certificate have expired; the connection is closed. Errors that may
// pass are so only after 10 s, as credentials are when the connection tries to come back. Owners
// and followers go on by themselves after the repair. A connection that nats.go closed is not
// repaired: nats.IgnoreAuthErrorAbort keeps one open whose login is refused twice.
//
// Connect with nats.MaxReconnects(-1), as a connection that has given up is not made again, and
// with a short nats.ReconnectWait: by default two seconds pass before another server is tried.
//
// Connect with the URLs of all servers. A server that is cut off from the others keeps its clients
// and has nothing new for them. After 6 s without an answer of a leader on a connection that a log
// needs, the log makes the connection go to another server, with nats.Conn.ForceReconnect. All logs
// on a connection do so at most once in 6 s. What else the program does on the connection is
// interrupted as by any reconnect.
package natslog
