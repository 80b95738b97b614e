import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'

/** Max line length of a plan, which repeats the values of the call: they may be a thousand ids. */
const lineMax = 300

type Sent = { text: string; values: unknown[] }

/**
 * The plans of the last statement that a call sends: the one for its values, and the generic one that PostgreSQL
 * may choose for a prepared statement. The statement comes from the driver, so it is exactly the one that ran.
 */
export async function explain(client: pg.Client, call: () => Promise<unknown>): Promise<string> {
  const sent = await lastStatement(call)
  const parts: string[] = []
  for (const mode of ['force_custom_plan', 'force_generic_plan']) {
    await client.query(`set plan_cache_mode = ${mode}`)
    await client.query(`prepare explained as ${sent.text}`)
    const given = sent.values.length > 0 ? `(${sent.values.map(literal).join(', ')})` : ''
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain (analyze, buffers) execute explained${given}`,
    )
    parts.push(`-- ${mode}`, ...rows.map((row) => row['QUERY PLAN'].slice(0, lineMax)))
    await client.query('deallocate explained')
  }
  await client.query('reset plan_cache_mode')
  return parts.join('\n')
}

/** Writes the plans to `local/<name>-plans.md` next to the results; too long and short-lived to commit. */
export async function writePlans(
  results: string,
  name: string,
  cases: readonly { name: string; plan: string }[],
): Promise<void> {
  const local = join(results, 'local')
  await mkdir(local, { recursive: true })
  const sections = cases.map((one) => `## ${one.name}\n\n\`\`\`\n${one.plan}\n\`\`\`\n`)
  await writeFile(join(local, `${name}-plans.md`), sections.join('\n'))
}

async function lastStatement(call: () => Promise<unknown>): Promise<Sent> {
  const { prototype } = pg.Client
  const query = prototype.query
  let last: Sent | undefined
  prototype.query = function (this: pg.Client, sent: Sent, ...rest: unknown[]) {
    // Plain strings are BEGIN and COMMIT.
    if (typeof sent === 'object') last = sent
    return Reflect.apply(query, this, [sent, ...rest])
  } as typeof query
  try {
    await call()
  } finally {
    prototype.query = query
  }
  if (last === undefined) throw new Error('The call sent no statement')
  return last
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  const text = Array.isArray(value) ? `{${value.join(',')}}` : String(value)
  return `'${text.replaceAll("'", "''")}'`
}
