import { setTimeout as delay } from 'node:timers/promises'
import { type ReadOnly, type Sql, sql } from '../db/db.ts'
import type { Judgement, Rule } from './rule.ts'
import { ownRules } from './rules.ts'
import { schemaRules } from './schema-rules.ts'

export type JudgeOptions = {
  remedy: string
  /** The share of the rows to read, in per cent. */
  sample?: number
  /** Waits after each chunk for as long as that chunk took, so that others come first. */
  isGentle?: boolean
  /** Called with the rows read so far. */
  onRows?: (rows: number) => void
}

const chunkRows = 10_000
const pauseMaxMs = 1000

/**
 * Judges what the database holds, without writing: every constraint and rule over every row, V3 to V11 except V5. Reads
 * each table once, in the order of its pages on disk.
 */
export async function judge(reads: ReadOnly, options: JudgeOptions): Promise<Judgement[]> {
  const judgements = await wholeFindings(reads, options)
  const rules = [...(await schemaRules(reads)), ...ownRules]
  const progress = { rows: 0 }
  for (const table of new Set(rules.map((rule) => rule.table))) {
    const broken = await judgeTable(
      reads,
      rules.filter((rule) => rule.table === table),
      options,
      progress,
    )
    judgements.push(...broken)
  }
  return judgements.sort((a, b) => Number(a.check.slice(1)) - Number(b.check.slice(1)))
}

async function wholeFindings(reads: ReadOnly, { remedy }: JudgeOptions): Promise<Judgement[]> {
  const weak = await reads.rows<{ what: string }>(sql`
    select format('The constraint %I of %s is not valid.', conname, conrelid::regclass) as what
      from pg_constraint where not convalidated and connamespace = current_schema()::regnamespace
    union all
    select format('The index %s is not valid. Reindex it.', indexrelid::regclass)
      from pg_index join pg_class on pg_class.oid = indexrelid
      where not indisvalid and relnamespace = current_schema()::regnamespace
    order by 1`)
  const single = await reads.rows<{ what: string }>(sql`
    select format('%s has %s rows instead of one.', name, rows) as what from (
      select 'app_settings' as name, count(*) as rows from app_settings
      union all select 'audit_position', count(*) from audit_position
      union all select 'bootstrap_lock', count(*) from bootstrap_lock) counted
    where rows <> 1 order by 1`)
  return [
    ...weak.map(({ what }) => ({ check: 'V3', finding: 'constraint_not_valid', what, remedy })),
    ...single.map(({ what }) => ({ check: 'V4', finding: 'not_single', what, remedy })),
  ]
}

type Leaf = { name: string; key: string; pages: number; rows: number }
type Found = { rows: number; examples: string[] }

async function judgeTable(
  reads: ReadOnly,
  rules: readonly Rule[],
  { sample = 100, isGentle = false, onRows, remedy }: JudgeOptions,
  progress: { rows: number },
): Promise<Judgement[]> {
  const table = rules[0]?.table as string
  const found = rules.map((): Found => ({ rows: 0, examples: [] }))
  for (const leaf of await leavesOf(reads, table)) {
    const step = leaf.rows > 0 ? Math.max(1, Math.floor((chunkRows * leaf.pages) / leaf.rows)) : 64
    for (let page = 0; page < leaf.pages; page += step) {
      if (sample < 100 && Math.random() * 100 >= sample) continue
      const begun = performance.now()
      progress.rows += await judgeChunk(reads, rules, leaf, [page, page + step], found)
      onRows?.(progress.rows)
      if (isGentle) await delay(Math.min(pauseMaxMs, performance.now() - begun))
    }
  }
  return rules.flatMap(({ check, finding, what }, index) => {
    const { rows, examples } = found[index] as Found
    if (rows === 0) return []
    const some = `${examples.join(', ')}${rows > examples.length ? ', …' : ''}`
    return { check, finding, what: `${rows} rows of ${table} ${what}: ${some}.`, remedy }
  })
}

/** The partitions of a table that hold rows; the table itself if it is not partitioned. */
const leavesOf = (reads: ReadOnly, table: string): Promise<Leaf[]> =>
  reads.rows<Leaf>(sql`
    select relid::regclass::text as name, c.reltuples::float8 as rows,
      (pg_relation_size(relid) / current_setting('block_size')::int)::float8 as pages,
      coalesce((select string_agg(format('t.%I', attname), ', ' order by array_position(i.indkey::int2[], attnum))
        from pg_index i join pg_attribute a on a.attrelid = i.indrelid and attnum = any (i.indkey)
        where i.indrelid = relid and indisprimary), 't.ctid') as key
    from (select to_regclass(${table})::oid as relid
      union select relid from pg_partition_tree(to_regclass(${table}))) p
    join pg_class c on c.oid = relid where relkind = 'r'`)

const examplesMax = 3

/** Adds the findings in the rows between two pages; resolves to the number of rows. */
async function judgeChunk(
  reads: ReadOnly,
  rules: readonly Rule[],
  { name, key, pages }: Leaf,
  [from, to]: [number, number],
  found: Found[],
): Promise<number> {
  const id = sql.raw(`concat_ws('/', ${key})`)
  // The table may have grown since its pages were counted.
  const end = to >= pages ? sql.empty : sql`and t.ctid < ${`(${to},0)`}::tid`
  const rows = sql`from ${sql.raw(name)} t where t.ctid >= ${`(${from},0)`}::tid ${end}`
  const add = (index: number, count: number, examples: readonly string[]): void => {
    const one = found[index] as Found
    one.rows += count
    one.examples.push(...examples.slice(0, examplesMax - one.examples.length))
  }
  const conditions = rules.map(({ broken }) => (typeof broken === 'string' ? sql.raw(broken) : sql`false`))
  const lists = sql.join(
    conditions.map((broken, index) => sql`array_agg(${id}) filter (where ${broken}) as ${column(index)}`),
    ', ',
  )
  const counts = sql.join(
    rules.map((_, index) => sql`cardinality(${column(index)}), ${column(index)}[1:${sql.raw(examplesMax)}]`),
    ', ',
  )
  const answer = await reads.one<{ rows: number; found: (number | string[] | null)[] }>(sql`
    select seen as rows, json_build_array(${counts}) as found
    from (select count(*)::int as seen, ${lists} ${rows}) listed`)
  for (const index of rules.keys())
    add(index, Number(answer.found[2 * index] ?? 0), (answer.found[2 * index + 1] ?? []) as string[])

  for (const [index, { broken }] of rules.entries()) {
    if (typeof broken === 'string') continue
    const names = sql.raw(broken.columns.map((one) => `t.${one}`).join(', '))
    const read = await reads.rows<Record<string, string | null>>(sql`select ${id} as key, ${names} ${rows}`)
    const bad = read.filter(broken.isBroken).map(({ key }) => key as string)
    add(index, bad.length, bad)
  }
  return answer.rows
}

const column = (index: number): Sql => sql.raw(`broken_${index}`)
