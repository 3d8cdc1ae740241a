package tidegate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
)

func TestErrorsAreApart(t *testing.T) {
	t.Parallel()
	tokenErrors := []error{
		tidegate.ErrTokenMalformed, tidegate.ErrTokenSignature, tidegate.ErrTokenKey,
		tidegate.ErrTokenExpired, tidegate.ErrTokenFuture, tidegate.ErrTokenTooLarge,
	}
	others := []error{
		tidegate.ErrNoPrimary, tidegate.ErrNotFresh, tidegate.ErrReadOnly,
		tidegate.ErrClosed, tidegate.ErrClass, tidegate.ErrConfig, tidegate.ErrLagging,
	}
	for _, err := range tokenErrors {
		if !errors.Is(err, tidegate.ErrToken) {
			t.Errorf("%v does not wrap ErrToken", err)
		}
	}
	for _, err := range others {
		if errors.Is(err, tidegate.ErrToken) {
			t.Errorf("%v wraps ErrToken", err)
		}
	}
	all := slices.Concat(tokenErrors, others)
	for i, a := range all {
		if !strings.HasPrefix(a.Error(), "tidegate: ") {
			t.Errorf("%q does not say where it comes from", a)
		}
		for j, b := range all {
			if i != j && errors.Is(a, b) {
				t.Errorf("%v is %v", a, b)
			}
		}
	}
}

func TestNotFreshError(t *testing.T) {
	t.Parallel()
	for _, noPrimary := range []bool{false, true} {
		err := fmt.Errorf("load the page: %w", &tidegate.NotFreshError{
			Cluster: "main", Class: tidegate.Strong("claim", "w"), Required: tidegate.Beyond(7), Observed: tidegate.At(5),
			Waited: 20 * time.Millisecond, NoPrimary: noPrimary,
		})
		if !errors.Is(err, tidegate.ErrNotFresh) {
			t.Errorf("%v is not ErrNotFresh", err)
		}
		if got := errors.Is(err, tidegate.ErrNoPrimary); got != noPrimary {
			t.Errorf("%v is ErrNoPrimary: %v, want %v", err, got, noPrimary)
		}
		var typed *tidegate.NotFreshError
		if !errors.As(err, &typed) || typed.Required != tidegate.Beyond(7) {
			t.Errorf("%v does not give its data", err)
		}
		for _, s := range []string{"cluster main", "class claim (strong)", "required >7", "newest replica 5", "waited 20ms"} {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%q does not say %q", err, s)
			}
		}
		if got := strings.Contains(err.Error(), "no primary is known"); got != noPrimary {
			t.Errorf("%q speaks of the primary: %v, want %v", err, got, noPrimary)
		}
	}
}
