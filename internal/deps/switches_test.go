package deps

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// switches are the functions that weaken the product so that a test can see
// that it notices: only tests may call them.
var switches = regexp.MustCompile(`\b(rules\.Break|chance\.Seed)\(`)

func TestOnlyTestsUseSwitches(t *testing.T) {
	uses := 0
	for _, src := range readTree(t).sources {
		text, err := os.ReadFile(filepath.Join(root, src.file))
		if err != nil {
			t.Fatal(err)
		}
		if !switches.Match(text) {
			continue
		}
		uses++
		if !src.test {
			t.Errorf("%s calls %s outside a test", src.file, switches.Find(text))
		}
	}
	if uses == 0 {
		t.Error("no test uses a switch: the pattern looks for something that is gone")
	}
}
