module github.com/tidegatedb/tidegate

go 1.25.0
