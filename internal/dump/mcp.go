package dump

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stet-ecs/stet/internal/near"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The command mcp answers an agent by running the commands of other questions in its own process.
//
//	client ⇄ standard input and output: messages of the protocol
//	a message that calls a tool ──▶ answer: a command line, run by an app of its own
//	lender: views of the stores, which stay open from one question to the next
//
// Several questions come at the same time; maxTurns bounds how many are answered, others wait.
// Nothing that a command prints reaches standard output by itself: it belongs to the protocol.

var mcpCommand = command{
	use: "mcp STORE …",
	doc: `Answer an agent's questions by the Model Context Protocol

Serve a store or a save to an agent, by the Model Context Protocol on standard input
and output: a client starts this command and asks it. Its tools are commands: info,
schema, query, show, history, blame, bisect, plot, diff, branches, marks, panel and log, with their flags; what
they answer is what these print with --json, and what goes wrong is told in the same
words.

An answer is short: what a limit leaves out is said, and how to ask on. Only what the
arguments name can be read, and nothing is ever written or run. A store that a program
has open is followed: each question sees the newest tick.

It ends when standard input does. docs/AGENTS.md says how to tell a client of it.`,
	example: `  ecsdump mcp D
  ecsdump mcp tick27-peer1.save tick27-peer2.save`,
	run: func(flags) action {
		return func(c *call) error {
			if slices.Contains(c.args, standardInput) {
				return c.misused("standard input has the questions of the agent: give the name of a file")
			}
			s := &agentServer{call: c, turns: make(chan struct{}, maxTurns), lender: lender{open: c.open, stores: c.args, idle: map[string][]*inspect.View{}}}
			defer s.lender.close()
			return s.run()
		}
	},
}

// maxTurns is how many questions are answered at the same time: each may hold a state.
const maxTurns = 2

// An agentServer answers the questions of an agent. Each is a call of a tool, and runs the command of
// the tool as a command line would, but that its views are lent and its output is kept:
//
//	arguments (JSON) ──▶ command line ──▶ execute ──▶ document ──▶ cut ──▶ answer
//
// What an agent gets is the document that --json prints, as text and as a structure; damage and
// other failures are told behind it in the words of the command line.
type agentServer struct {
	*call
	lender lender
	turns  chan struct{} // Has an element for each question that is being answered.
}

// run answers until nobody asks any more. A store that cannot be opened is told before. Each store
// is opened once, which also gives the lender a view to begin with.
func (s *agentServer) run() error {
	for _, store := range s.args {
		_, back, err := s.lender.lend(s.ctx, store)
		if err != nil {
			return opening(store, err)
		}
		back()
	}
	if err := s.Unpaged(); err != nil {
		return err
	}
	err := s.server().Run(s.ctx, &mcp.IOTransport{Reader: io.NopCloser(s.stdin), Writer: flusher{s.Out}})
	if errors.Is(err, io.EOF) || s.ctx.Err() != nil { // That is how it ends.
		return nil
	}
	return system(err)
}

// A flusher writes each message at once.
type flusher struct{ *term.Out }

func (w flusher) Write(p []byte) (n int, err error) {
	if n, err = w.Out.Write(p); err == nil {
		err = w.Flush()
	}
	return n, err
}

// Close leaves standard output to whoever opened it.
func (flusher) Close() error { return nil }

// server returns what speaks the protocol, with a tool for each of [tools].
func (s *agentServer) server() *mcp.Server {
	which := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		which = info.Main.Version
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "ecsdump", Title: "Stores and saves of Stet", Version: which}, &mcp.ServerOptions{
		Instructions: s.instructions(), Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for i := range tools {
		t := &tools[i]
		closed := false
		server.AddTool(&mcp.Tool{
			Name: t.command.name(), Description: t.description(), InputSchema: t.input(s.args), OutputSchema: t.output(),
			Annotations: &mcp.ToolAnnotations{Title: t.command.title(), ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed},
		}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.answer(telling(ctx, r), t, r.Params.Arguments), nil
		})
	}
	return server
}

// instructions is what a client is told beside the tools.
func (s *agentServer) instructions() string {
	return `Each tool is a command of ecsdump, which prints what a store (the history of a simulation, tick by
tick) or a save (one state) of an entity component system holds: ` + strings.Join(s.args, ", ") + `.
The members of its input are the arguments and flags of the command; where its description writes
--flag, give the member of that name. Begin with info and schema, which say what there is; query
finds entities, show and history tell of one; where something is wrong, bisect finds the first tick
at which a condition holds, plot how a number went, blame which tick wrote a value, log what a tick
did, diff how two states differ. Answers are short: total, earlier, more and left_out say what was left out.

` + pointsText
}

// telling returns ctx with somebody who tells the client how far what takes long has come, if
// the client wants to know. Not more often than four times a second: a client shows it to people.
func telling(ctx context.Context, r *mcp.CallToolRequest) context.Context {
	token := r.Params.GetProgressToken()
	if token == nil {
		return ctx
	}
	const often = 250 * time.Millisecond
	var last time.Time
	var told sync.Mutex
	return persist.WithProgress(ctx, func(p persist.Progress) { // Called by several goroutines, and often.
		told.Lock()
		defer told.Unlock()
		if now := time.Now(); now.Sub(last) >= often {
			last = now
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // Whoever has gone asks for nothing more.
				ProgressToken: token, Message: string(p.Phase), Progress: float64(p.Done), Total: float64(p.Total),
			})
		}
	})
}

// answer runs the command of t. What went wrong is the text of the answer, behind the document if there
// is one: of a damaged store what could be read is told.
func (s *agentServer) answer(ctx context.Context, t *tool, arguments []byte) *mcp.CallToolResult {
	result := &mcp.CallToolResult{Content: []mcp.Content{}}
	doc, err := s.ask(ctx, t, arguments)
	if len(doc) > 0 {
		result.StructuredContent = doc
		result.Content = append(result.Content, &mcp.TextContent{Text: string(doc)})
	}
	if err != nil {
		result.IsError = true
		result.Content = append(result.Content, &mcp.TextContent{Text: strings.Join(err.lines(), "\n")})
	}
	return result
}

// ask runs the command of t, and returns its document, cut to what an agent can read.
//
//	arguments that are wrong     an error, before the question waits for its turn
//	states that differ           no error: the document says it
//	output over maxPrinted       an error, which says how to ask for less
//	damage                       the document and the error
func (s *agentServer) ask(ctx context.Context, t *tool, arguments []byte) (doc rawDocument, f *failure) {
	args, err := t.arguments(arguments, s.args)
	if err != nil {
		return nil, fail(exitUsage, "", "%w", err)
	}
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return nil, classify(t.command.name(), ctx.Err())
	}
	// The command prints to memory, reads nothing, and shows no progress of its own: whatever it
	// tells is in the document, and in f.
	printed := new(bounded)
	a := &app{Out: term.NewOut(printed, nil), stdin: strings.NewReader(""), stderr: io.Discard, lend: s.lender.lend}
	if t.anew {
		a.lend = s.lender.lendNew
	}
	f = a.execute(ctx, []*command{t.command}, args)
	switch {
	case f != nil && errors.Is(f, errDiffer):
		f = nil // The differences were printed.
	case f != nil && errors.Is(f, errTooLarge):
		return nil, fail(exitUsage, "", "%w; %s", errTooLarge, t.on)
	}
	if printed.Len() == 0 {
		return nil, f
	}
	doc, err = t.cut(printed.Bytes(), args)
	if err != nil && f == nil {
		f = fail(exitUsage, "", "%w", err)
	}
	return doc, f
}

// A lender keeps the views of stores between questions. One is brought up to date when it is lent
// again. A view is for one question at a time, so there are as many of a store as questions are
// answered at once. It is lent only for what the command line named: an agent must not read other
// files by writing their paths.
//
//	lend      an idle view, refreshed; else a new one
//	back      to idle, if it can be refreshed and there is room; else it is closed
//
// mu is held while a store is opened, since app.find notes there what it opened.
type lender struct {
	open   func(ctx context.Context, path string) (*inspect.View, error)
	stores []string // That may be opened.

	mu   sync.Mutex
	idle map[string][]*inspect.View // By store.
}

// lend implements [lending]. A view that cannot be refreshed is closed, and opened again: the error
// of that is told.
func (l *lender) lend(ctx context.Context, path string) (v *inspect.View, back func(), err error) {
	if v := l.take(path); v != nil {
		if _, err := v.Refresh(ctx); err == nil {
			return v, func() { l.keep(path, v) }, nil
		}
		_ = v.Close() // What became of the store shows when it is opened anew.
	}
	return l.lendNew(ctx, path)
}

// lendNew lends a view that it opens for it. Tools that say who has the store open need one, as a
// view knows that from when it was opened. On an error there is no view, and back must not be
// called.
func (l *lender) lendNew(ctx context.Context, path string) (v *inspect.View, back func(), err error) {
	if err := l.known(path); err != nil {
		return nil, nil, err
	}
	l.mu.Lock() // Openers may be asked by one at a time only.
	v, err = l.open(ctx, path)
	l.mu.Unlock()
	return v, func() { l.keep(path, v) }, err
}

// known returns an error if path is none of the stores that may be read.
func (l *lender) known(path string) error {
	if slices.Contains(l.stores, path) {
		return nil
	}
	return fail(exitNotFound, "", "no store %q%s; there is %s", path, near.Hint(path, l.stores), strings.Join(l.stores, ", "))
}

// take returns a view of the store at path that is idle, or nil.
func (l *lender) take(path string) (v *inspect.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if views := l.idle[path]; len(views) > 0 {
		last := len(views) - 1
		v, l.idle[path] = views[last], views[:last]
	}
	return v
}

// keep keeps v for the next question, unless it cannot be brought up to date: another save
// may have taken the place of one. Room is for as many as can be asked at once.
func (l *lender) keep(path string, v *inspect.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.IsSave() || len(l.idle[path]) == maxTurns {
		_ = v.Close() // It was only read.
		return
	}
	l.idle[path] = append(l.idle[path], v)
}

// close closes all views that are idle.
func (l *lender) close() {
	for _, views := range l.idle {
		for _, v := range views {
			_ = v.Close() // They were only read.
		}
	}
}
