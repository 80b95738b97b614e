/** SQL for the ids of tables and their partitions; `tables` is SQL for an array of tables as `regclass`. */
export const withPartitions = (tables: string): string => `(
  select part.relid from unnest(${tables}) as divided (id)
    cross join lateral (select id as relid union select relid from pg_partition_tree(id)) part)`
