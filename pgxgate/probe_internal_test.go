package pgxgate

import (
	"errors"
	"testing"
	"testing/synctest"
)

// Whoever waits to ask a node that is taken away meanwhile is told so.
func TestAskingANodeThatIsTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch{turn: make(chan struct{}, 1), gone: make(chan struct{})}
		w.turn <- struct{}{} // somebody else's
		told, ended := make(chan error, 1), make(chan struct{})
		go func() { told <- w.on(t.Context(), nil) }()
		synctest.Wait()
		go func() { w.end(t.Context()); close(ended) }()
		synctest.Wait()
		select {
		case err := <-told:
			if !errors.Is(err, errNodeGone) {
				t.Error(err)
			}
		default:
			t.Error("it waits on")
		}
		<-w.turn
		<-ended
		if err := w.on(t.Context(), nil); !errors.Is(err, errNodeGone) {
			t.Errorf("afterwards: %v", err)
		}
	})
}
