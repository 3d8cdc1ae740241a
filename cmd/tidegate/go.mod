module github.com/tidegatedb/tidegate/cmd/tidegate

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/jackc/pgx/v5 v5.13.0
	github.com/jedib0t/go-pretty/v6 v6.9.2
	github.com/redis/go-redis/v9 v9.23.0
	github.com/tidegatedb/tidegate v0.1.0
	github.com/tidegatedb/tidegate/pgxgate v0.1.0
	github.com/tidegatedb/tidegate/redisgate v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/mattn/go-runewidth v0.0.16 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
