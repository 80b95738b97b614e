import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { lastStatement, plansOf } from '../test/helpers/plans.ts'

/** Max line length of a plan, which repeats the values of the call: they may be a thousand ids. */
const lineMax = 300

/** Both plans of the last statement that a call sends. */
export async function explain(client: pg.Client, call: () => Promise<unknown>): Promise<string> {
  const parts: string[] = []
  for await (const { mode, rows } of plansOf(client, await lastStatement(call), 'analyze, buffers'))
    parts.push(`-- ${mode}`, ...rows.map((row) => String(row['QUERY PLAN']).slice(0, lineMax)))
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
