/** The `pg_locks` of the database that is asked; other databases of the run have tables of the same numbers. */
export const ownLocks = `(
  select * from pg_locks where database = (select oid from pg_database where datname = current_database()))`
