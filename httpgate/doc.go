// Package httpgate carries consistency tokens over HTTP. A middleware gives every
// request the session that its tokens describe, and every response the token of
// what the session requires afterwards, so that the next request sees what this
// one wrote and saw, on whichever instance it lands.
//
//	gate, err := httpgate.New(httpgate.Config{
//		Keyring:  keyring,
//		Clusters: []string{"main"},
//		Sources:  []httpgate.Source{httpgate.Cookie(httpgate.CookieConfig{}), httpgate.Header("")},
//		Known:    func(r *http.Request) bool { return loggedIn(r) },
//	})
//	http.ListenAndServe(addr, gate.Wrap(mux))
//
// Handlers pass the request's context on to the database, and need nothing else.
// With chi it is r.Use(gate.Wrap), with echo e.Use(echo.WrapMiddleware(gate.Wrap)),
// with gin gate.Wrap(engine).
//
// # When a response carries a token
//
// The headers go out before the first byte of the body, so that is when the token
// is taken: at the first Write, Flush or final status, or when the handler returns
// or panics without any. Informational responses (1xx) come before. A panic passes
// on; whoever turns it into an answer, further out, finds the token among the
// headers. The token goes where the request's tokens came from, and everywhere to
// who brought none.
//
// A response carries a token if what the session requires is not what the request
// brought, and also if it is the same but for the moment: when the handler has
// asked for its session, and the token names a replica that was read from or a
// duty to catch up. A session that stays on its replica has the same token after
// each read, and the replica shows more each time; a parallel request that leaves
// the replica settles only what it knew of, and its response deletes the token
// that both had brought. The read that stayed must leave one of its own. So, of
// the two ways to keep that from going wrong, every response that may have read on
// a replica emits; none keeps flagged entries in the token instead.
//
// A request that never asks its context for the session leaves its response as it
// was, so static files stay cacheable behind the middleware.
//
// What changes after the first byte cannot go out. A [Store]
// keeps it when the request ends; without one it is counted, and told to
// Config.Late. The count can be too high, when something that was under way at the
// first byte ends with no more than the token had said; it is never of requests
// that did not use the session. Let handlers commit before they write. A connection
// that was hijacked has no headers at all. http.TimeoutHandler answers while the
// handler still runs: give database calls a deadline instead.
//
// A response with a token is not for caches: its Cache-Control becomes private,
// no-store, whatever the handler had set to the contrary, and so do the headers
// that only CDNs and some proxies obey. A cache that gave an old token back to a client would undo
// what the client knew since. Vary is left alone. Pages of other origins need
// Access-Control-Expose-Headers to see the header.
//
// # What a client does with tokens
//
// Requests of one client run in parallel and their responses arrive in any order.
// What keeps the newer one is that a client holds a set of tokens, each under a
// name that was never used before:
//
//   - By cookie, a response sets one cookie with a new random name, and deletes
//     those that its request brought. A browser does the rest.
//   - By header, a client sends all tokens it has, separated by commas, and when a
//     response brings one, forgets those that it sent with that request and keeps
//     the new one beside the others. [Jar] does it for clients in Go.
//
// A client has about as many tokens as requests in flight. When there are more
// than Config.MaxTokens, the next response merges them.
//
// A client that keeps the last token only has the guarantees along the chain of
// the tokens that it kept: what a parallel response said, before or after, is lost
// to it. One whose requests do not overlap loses nothing.
//
// When a request that may have written gets no response, the client does not know
// what it must see. By header it sends something that is no token, such as "lost",
// beside the others until a response brings one; [Jar] does. A browser cannot: a page
// whose form post got no answer can show the state before it.
//
// The text of a token in a header ends in ";" and an ID that makes it unique.
// Clients do not look into it, and send it back as it is or without.
//
// A service that passes a response on, such as a reverse proxy, leaves the token in it;
// its own stands beside it.
//
// # Missing and refused tokens
//
// Who brings no token is new, and requires nothing, unless Config.Known says
// otherwise: a user who is logged in and has no token has lost it, and must see
// all that is committed so far. A visitor who brings none and only reads on
// replicas gets none either; see Config.VisitorReads.
//
// A token that is forged, expired, of a key or of clusters that are not known
// here, cut off or too long counts as none, is counted by its reason, and makes the
// session catch up. So does one too many. It is never an error of the request, and
// advances nothing that others share. A valid token of somebody else costs
// freshness and shows nothing.
//
// # Sessions in a store
//
// A [Store] among the sources keeps sessions on the server's side, under a key of the
// application's. The token then goes out with the response only where the store could
// not keep it, and cookies that a request brings are deleted once the store has what
// they say. A header cannot be deleted, so it is answered by one.
//
// # Calls to other services
//
// A [Transport] sends the session's token to the services that it names, and
// merges what they answer.
package httpgate
