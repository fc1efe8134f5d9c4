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

// The command mcp serves an agent. It runs other commands in the same process. The messages of the
// protocol come from standard input and go to standard output. When a message calls a tool,
// answer() runs the command line in a separate app. A viewPool keeps the views of the stores open
// between calls.
//
// At most maxParallel calls run in parallel. The output of a command goes to memory, because
// standard output is the connection to the client.

var mcpCommand = command{
	use: "mcp STORE …",
	doc: `Answer an agent's questions by the Model Context Protocol

Serve a store or a save to an agent, by the Model Context Protocol on standard input
and output. The client of the agent starts this command. Its tools are the commands
info, schema, query, show, history, blame, bisect, plot, diff, branches, marks, panel
and log, with their flags. A tool answers what the command prints with --json, and
reports errors in the same words.

Answers are short. If a limit leaves something out, the answer says so, and how to ask
for the rest. The tools read only the stores in the arguments, and never write or run
anything. A store that a program has open is followed: each answer is about the newest
tick.

The command ends when standard input ends. docs/AGENTS.md shows how to configure a
client.`,
	example: `  ecsdump mcp D
  ecsdump mcp tick27-peer1.save tick27-peer2.save`,
	run: func(flags) action {
		return func(c *call) error {
			if slices.Contains(c.args, standardInput) {
				return c.misused("standard input is for the questions of the agent: give the name of a file")
			}
			s := &agentServer{call: c, slots: make(chan struct{}, maxParallel), lender: viewPool{open: c.open, stores: c.args, idle: map[string][]*inspect.View{}}}
			defer s.lender.close()
			return s.run()
		}
	},
}

// maxParallel is the largest number of calls that run in parallel. Each call may keep a state in
// memory.
const maxParallel = 2

// An agentServer serves the tool calls of an agent. For each call, it converts the JSON arguments
// to a command line and runs the command. It captures the printed document, shortens it, and
// returns it as the answer.
//
// An answer has the document of --json, as text and as a structure. Damage and other failures
// follow as text.
type agentServer struct {
	*call
	lender viewPool
	slots  chan struct{} // A semaphore: one element per call in progress.
}

// run serves calls until the client closes the connection. It opens each store once before the
// first call, so a wrong store fails at the start.
func (s *agentServer) run() error {
	for _, store := range s.args {
		_, back, err := s.lender.lend(s.ctx, store)
		if err != nil {
			return classifyOpen(store, err)
		}
		back()
	}
	if err := s.Unpaged(); err != nil {
		return err
	}
	err := s.server().Run(s.ctx, &mcp.IOTransport{Reader: io.NopCloser(s.stdin), Writer: flusher{s.Out}})
	if errors.Is(err, io.EOF) || s.ctx.Err() != nil { // The normal end of a session.
		return nil
	}
	return systemError(err)
}

// A flusher is standard output that is flushed after each message.
type flusher struct{ *term.Out }

func (w flusher) Write(p []byte) (n int, err error) {
	if n, err = w.Out.Write(p); err == nil {
		err = w.Flush()
	}
	return n, err
}

// Close does nothing, because standard output stays open.
func (flusher) Close() error { return nil }

// server returns a server of the protocol, with one tool for each of [tools].
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
			return s.answer(withProgress(ctx, r), t, r.Params.Arguments), nil
		})
	}
	return server
}

// instructions returns the text that a client gets together with the tools.
func (s *agentServer) instructions() string {
	return `Each tool is a command of ecsdump, which prints the contents of a store (the history of a simulation,
tick by tick) or a save (one state) of an entity component system. Here: ` + strings.Join(s.args, ", ") + `.
The members of its input are the arguments and flags of the command. For a flag --NAME in a
description, give the member NAME. Begin with info and schema, which give an overview. Query finds
entities; show and history describe one. To find the cause of a problem: bisect finds the first tick
at which a condition holds, plot shows a number over time, blame finds the tick that wrote a value,
log shows what a tick did, and diff shows how two states differ. Answers are short: total, earlier,
more and left_out say what was left out.

` + pointsText
}

// withProgress returns a context that sends progress to the client, if the client wants it, at most
// four times per second.
func withProgress(ctx context.Context, r *mcp.CallToolRequest) context.Context {
	token := r.Params.GetProgressToken()
	if token == nil {
		return ctx
	}
	const often = 250 * time.Millisecond
	var last time.Time
	var mu sync.Mutex
	// Several goroutines report progress, many times per second. Most reports are dropped.
	return persist.WithProgress(ctx, func(p persist.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= often {
			last = now
			// An error means that the client has disconnected.
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Message: p.Phase, Progress: float64(p.Done), Total: float64(p.Total),
			})
		}
	})
}

// answer runs the command of t. For a damaged store, the result has the readable part of the
// document and then the failure.
func (s *agentServer) answer(ctx context.Context, t *tool, arguments []byte) *mcp.CallToolResult {
	result := &mcp.CallToolResult{Content: []mcp.Content{}}
	doc, err := s.runTool(ctx, t, arguments)
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

// runTool runs the command of t and returns its document, shortened for an agent. Each row has a
// case and the result:
//
//	the arguments are wrong       an error, without waiting for other calls
//	the states differ             the document, which shows the differences
//	output exceeds maxPrinted     an error that says how to request less
//	the store is damaged          the document and the error
func (s *agentServer) runTool(ctx context.Context, t *tool, arguments []byte) (doc rawDocument, f *failure) {
	args, err := t.arguments(arguments, s.args)
	if err != nil {
		return nil, fail(exitUsage, "", "%w", err)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, classify(t.command.name(), ctx.Err())
	}
	// The command prints to memory, reads no input and shows no progress.
	printed := new(bounded)
	a := &app{Out: term.NewOut(printed, nil), stdin: strings.NewReader(""), stderr: io.Discard, lend: s.lender.lend}
	if t.fresh {
		a.lend = s.lender.lendNew
	}
	f = a.execute(ctx, []*command{t.command}, args)
	switch {
	case f != nil && errors.Is(f, errDiffer):
		f = nil // The document shows the differences.
	case f != nil && errors.Is(f, errTooLarge):
		return nil, fail(exitUsage, "", "%w; %s", errTooLarge, t.advice)
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

// A viewPool keeps views of stores open between calls. A view is idle while no call uses it. At
// most one call at a time uses a view. The pool opens only stores on the command line, because an
// agent must not read other files.
//
// lend refreshes an idle view and returns it. If no view is idle, lend opens a new view. When a
// call ends, it calls back(), which makes the view idle again or closes it.
//
// The mutex is also locked while a store is opened, because openers must not run in parallel.
type viewPool struct {
	open   func(ctx context.Context, path string) (*inspect.View, error)
	stores []string // Stores that may be opened.

	mu   sync.Mutex
	idle map[string][]*inspect.View // Idle views by store.
}

// lend implements [lendFunc]. It opens the store again if the idle view cannot be refreshed.
func (l *viewPool) lend(ctx context.Context, path string) (v *inspect.View, back func(), err error) {
	if v := l.takeIdle(path); v != nil {
		if _, err := v.Refresh(ctx); err == nil {
			return v, func() { l.returnView(path, v) }, nil
		}
		_ = v.Close() // The refresh failed. If the store has a problem, lendNew reports it.
	}
	return l.lendNew(ctx, path)
}

// lendNew lends a newly opened view. Some tools report whether another program has the store open.
// They need a new view, because View.InUse checks this only when a view is opened.
func (l *viewPool) lendNew(ctx context.Context, path string) (v *inspect.View, back func(), err error) {
	if err := l.checkStore(path); err != nil {
		return nil, nil, err
	}
	l.mu.Lock() // Openers must not run in parallel.
	v, err = l.open(ctx, path)
	l.mu.Unlock()
	return v, func() { l.returnView(path, v) }, err
}

// checkStore returns an error if path does not name a store of the command line.
func (l *viewPool) checkStore(path string) error {
	if slices.Contains(l.stores, path) {
		return nil
	}
	return fail(exitNotFound, "", "no store %q%s; the stores are %s", path, near.Hint(path, l.stores), strings.Join(l.stores, ", "))
}

// takeIdle returns an idle view of the store at path, or nil. The view is no longer idle.
func (l *viewPool) takeIdle(path string) (v *inspect.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if views := l.idle[path]; len(views) > 0 {
		last := len(views) - 1
		v, l.idle[path] = views[last], views[:last]
	}
	return v
}

// returnView keeps v for the next call. It closes v if v is a save, because a save cannot be
// refreshed. It also closes v if the pool has maxParallel views of the store.
func (l *viewPool) returnView(path string, v *inspect.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.IsSave() || len(l.idle[path]) == maxParallel {
		_ = v.Close() // Ignore the error: the view is read-only.
		return
	}
	l.idle[path] = append(l.idle[path], v)
}

// close closes all idle views.
func (l *viewPool) close() {
	for _, views := range l.idle {
		for _, v := range views {
			_ = v.Close() // Ignore the error: the view is read-only.
		}
	}
}
