create table authors (
  id bigint primary key,
  name text not null
);
