import { type ReadOnly, sql } from '../db/db.ts'
import type { Rule } from './rule.ts'

/**
 * The constraints of the schema as rules. PostgreSQL checks them only when a row is written: it misses what a damaged
 * index hid, or what was loaded with constraints off.
 */
export async function schemaRules(reads: ReadOnly): Promise<Rule[]> {
  const found = await reads.rows<{
    table: string
    name: string
    broken: string
    type: 'c' | 'f' | 'i'
  }>(sql`
    select c.conrelid::regclass::text as table, c.conname::text as name, c.contype::text as type,
      case contype when 'c' then format('(%s) is false', pg_get_expr(conbin, conrelid)) else format(
        '%s is not null and not exists (select from %s p where (%s) = (%s))',
        (select string_agg(format('t.%I', a.attname), ' is not null and ') from pg_attribute a
          where a.attrelid = conrelid and a.attnum = any (conkey)),
        confrelid::regclass,
        (select string_agg(format('p.%I', a.attname), ', ' order by n) from unnest(confkey) with ordinality k (num, n)
          join pg_attribute a on a.attrelid = confrelid and a.attnum = num),
        (select string_agg(format('t.%I', a.attname), ', ' order by n) from unnest(conkey) with ordinality k (num, n)
          join pg_attribute a on a.attrelid = conrelid and a.attnum = num)) end as broken
    from pg_constraint c where connamespace = current_schema()::regnamespace and contype in ('c', 'f')
      and not exists (select from pg_class where oid = conrelid and relispartition)
    union all
    select attrelid::regclass::text, attname::text, 'i', format('t.%I > (select last_value from %s)', attname,
      pg_get_serial_sequence(attrelid::regclass::text, attname))
    from pg_attribute join pg_class on pg_class.oid = attrelid
    where attidentity <> '' and not attisdropped and relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace
    order by 1, 2`)
  return found.map(({ table, name, type, broken }) =>
    type === 'i'
      ? {
          check: 'V11',
          finding: 'identity_behind',
          table,
          broken,
          what: `have a ${name} that will be given again`,
        }
      : { check: 'V3', finding: 'constraint_broken', table, broken, what: `violate the constraint ${name}` },
  )
}
