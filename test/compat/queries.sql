-- name: GetAuthor :one
select id, name from authors where id = $1;

-- name: ListAuthors :many
select id, name from authors order by id;

-- name: CreateAuthor :one
insert into authors (id, name) values ($1, $2) returning id, name;

-- name: RenameAuthor :exec
update authors set name = $2 where id = $1;

-- name: DeleteAuthor :execrows
delete from authors where id = $1;

-- name: CopyAuthors :copyfrom
insert into authors (id, name) values ($1, $2);

-- name: RenameAuthors :batchexec
update authors set name = $2 where id = $1;

-- name: GetAuthors :batchone
select id, name from authors where id = $1;
