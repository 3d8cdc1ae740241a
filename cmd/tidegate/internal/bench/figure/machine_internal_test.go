package figure

import "testing"

func TestCPUModel(t *testing.T) {
	t.Parallel()
	const text = "processor\t: 0\nmodel\t\t: 1\nmodel name\t: Abacus 9000: fast\nflags\t: fpu\n"
	if got := cpuModel(text); got != "Abacus 9000: fast" {
		t.Errorf("got %q", got)
	}
	if got := cpuModel("processor : 0\nBogoMIPS : 9\n"); got != "" { // as on arm64
		t.Errorf("got %q", got)
	}
}
