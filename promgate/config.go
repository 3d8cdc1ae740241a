package promgate

// Config configures a [Collector].
type Config struct {
	// MaxClasses bounds the distinct class names that have series of their own, for
	// each cluster; further ones are counted as the class "other". Zero means 100,
	// a negative number that all are "other".
	MaxClasses int
}

// other is the class of what MaxClasses leaves out.
const other = "other"

func (c Config) withDefaults() Config {
	if c.MaxClasses == 0 {
		c.MaxClasses = 100
	}
	return c
}
