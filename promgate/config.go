package promgate

// Config configures a [Collector].
type Config struct {
	// MaxClasses bounds the distinct class names that have series of their own, for
	// each cluster; further ones are counted as the class "other". Zero means 100,
	// a negative number that all are "other".
	MaxClasses int
	// MaxCallSites bounds the distinct call sites of suspects in the same way.
	MaxCallSites int
}

// other is the class or the call site of what a bound leaves out.
const other = "other"

func (c Config) withDefaults() Config {
	if c.MaxClasses == 0 {
		c.MaxClasses = 100
	}
	if c.MaxCallSites == 0 {
		c.MaxCallSites = 100
	}
	return c
}
