// Package natslog implements [replica.Log] on NATS JetStream. The log of a replicated store is on
// three servers, and one of them may fail.
//
//	// The caller chooses servers, login and TLS of the connection nc.
//	js, err := jetstream.New(nc)
//	err = natslog.Create(ctx, js, "WORLDS", natslog.Options{}) // once
//	log, err := natslog.Open(ctx, js, "WORLDS", "europe", natslog.Options{})
//	f, err := replica.Follow(ctx, log, files, replica.Options{})
//
// A world is a subject of a stream, and an entry is a message of that subject. The position of an
// entry is the sequence of the message in the stream. A stream has one world or thousands.
// Positions have gaps where other worlds have entries.
//
// A message is appended only if the last message of the subject is the expected one. If no answer
// arrives, the message is sent again. The ID in each message shows whether the first try succeeded.
//
// # Settings of the servers
//
//	nats-server 2.15 or newer, three of them in a cluster
//	jetstream { sync_interval: always }
//	nats stream add WORLDS --subjects 'WORLDS.>' --storage file --replicas 3 \
//	    --retention limits --allow-direct --max-consumers 100000
//
// Without sync_interval, a message is acknowledged up to two minutes before it is on disk. The
// stream must not have a limit of age, number or size that removes messages. [Open] refuses a
// stream with other settings. Only the system account may read the interval: [CheckServers] asks
// all servers.
//
// The directory examples/cluster has the files of such a cluster, with logins and a place for TLS.
//
// # Many worlds
//
// A follower first reads existing entries in batches. It has at most 2 MiB of entries that are not
// applied yet. Any server of the stream answers these direct requests. Then the follower creates a
// consumer, and waits for new entries. So worlds that recover need no consumers, and each followed
// world has one consumer.
//
// By default, servers allow 1,000 consumers for a stream; [Create] allows more. If a stream has no
// consumer left, a follower polls four times a second instead. On a stream without --allow-direct,
// all reading needs a consumer.
//
// # Rights of a login
//
// To follow WORLDS.europe, a login publishes requests to these subjects, and reads the answers
// below _INBOX:
//
//	$JS.API.STREAM.INFO.WORLDS
//	$JS.API.STREAM.MSG.GET.WORLDS
//	$JS.API.CONSUMER.CREATE.WORLDS.*.WORLDS.europe
//	$JS.API.CONSUMER.MSG.NEXT.WORLDS.*
//	$JS.API.DIRECT.GET.WORLDS            optional: recovery without a consumer
//	$JS.API.CONSUMER.DELETE.WORLDS.*     optional: a reader that ends removes its consumer
//
// An owner also needs WORLDS.europe and $JS.API.STREAM.PURGE.WORLDS. STREAM.MSG.GET and DIRECT.GET
// read any world of the stream, and STREAM.PURGE removes entries of any world. Worlds that must not
// see each other need separate streams.
//
// Without CONSUMER.DELETE, each reader that ends causes at most one error in the handler of its
// connection. The servers then remove its consumer after 10 s. Servers do not answer a request that
// is not permitted, but the error of the call names the missing right.
//
// # When an operator must act
//
// Permanent errors wrap [replica.ErrOperator], and say what to do. Their causes are:
//   - The stream was removed, is full, is sealed, or accepts only small messages.
//   - JetStream is disabled for the account.
//   - The login lacks a right.
//   - The credentials or a certificate have expired.
//   - The connection is closed.
//
// A temporary error, such as refused credentials during a reconnect, becomes [replica.ErrOperator]
// after 10 s. Owners and followers continue by themselves after the repair, except on a connection
// that nats.go has closed. By default, nats.go closes a connection whose login is refused twice;
// nats.IgnoreAuthErrorAbort prevents that.
//
// # The connection
//
// Connect with nats.MaxReconnects(-1), because a connection that nats.go closed after its last
// attempt is never reopened. Use a short nats.ReconnectWait: by default, nats.go waits two seconds
// before it tries the next server.
//
// Connect with the URLs of all servers. A server that is cut off from the other servers still
// serves its clients, but has no new entries. If a log needs a leader and gets no answer for 6 s,
// it moves its connection to another server, with nats.Conn.ForceReconnect. A connection is moved
// at most once in 6 s. A move interrupts other uses of the connection like any reconnect.
package natslog
