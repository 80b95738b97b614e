import { type Step, statementsOf } from './steps.ts'

/** The locks that steps take on tables that exist, weakest first. */
const locks = [
  'ACCESS SHARE',
  'ROW EXCLUSIVE',
  'SHARE UPDATE EXCLUSIVE',
  'SHARE',
  'SHARE ROW EXCLUSIVE',
  'ACCESS EXCLUSIVE',
] as const
export type Lock = (typeof locks)[number]

/** Whether a statement reads, or writes anew, every row of its table. */
export type Cost = 'none' | 'scan' | 'rewrite'

export type Effect = { table: string; lock: Lock; cost: Cost }

type Rule = { at: RegExp; lock: (text: string) => Lock; cost: (text: string) => Cost }

const always =
  <T>(value: T) =>
  (): T =>
    value
const concurrent =
  (otherwise: Lock) =>
  (text: string): Lock =>
    /\bconcurrently\b/i.test(text) ? 'SHARE UPDATE EXCLUSIVE' : otherwise

/** The first group of each is the table. */
const rules: readonly Rule[] = [
  {
    at: /\balter table (?:if exists )?(?:only )?(\w+)/i,
    lock: (text) =>
      /\b(?:validate constraint|attach partition|(?:re)?set \(|set statistics)/i.test(text) &&
      !/\badd (?:column|constraint)\b/i.test(text)
        ? 'SHARE UPDATE EXCLUSIVE'
        : 'ACCESS EXCLUSIVE',
    cost: alterCost,
  },
  {
    at: /\bcreate (?:unique )?index (?:concurrently )?(?:if not exists )?\w+ on (?:only )?(\w+)/i,
    lock: concurrent('SHARE'),
    cost: always('scan'),
  },
  {
    at: /\bdrop index (?:concurrently )?(?:if exists )?(\w+)/i,
    lock: concurrent('ACCESS EXCLUSIVE'),
    cost: always('none'),
  },
  {
    at: /\b(?:drop|truncate) table (?:if exists )?(\w+)/i,
    lock: always('ACCESS EXCLUSIVE'),
    cost: always('none'),
  },
  { at: /\btruncate (?!table)(\w+)/i, lock: always('ACCESS EXCLUSIVE'), cost: always('none') },
  {
    at: /\bcreate (?:or replace )?trigger \w+ .*?\bon (\w+)/is,
    lock: always('SHARE ROW EXCLUSIVE'),
    cost: always('none'),
  },
  { at: /\breferences (\w+)/i, lock: always('SHARE ROW EXCLUSIVE'), cost: always('none') },
  {
    at: /(?<!\b(?:for|do|on|key) )\bupdate (?:only )?(?!set\b|skip\b|of\b|nowait\b)(\w+)/i,
    lock: always('ROW EXCLUSIVE'),
    cost: always('scan'),
  },
  { at: /\bdelete from (?:only )?(\w+)/i, lock: always('ROW EXCLUSIVE'), cost: always('scan') },
  { at: /\binsert into (\w+)/i, lock: always('ROW EXCLUSIVE'), cost: always('none') },
]

const volatile = /\bdefault (?!(?:now|current_timestamp|statement_timestamp)\b)\w+\s*\(/i

function alterCost(text: string): Cost {
  if (
    /\balter (?:column )?\w+ (?:set data )?type\b|\bgenerated always as\b|\bset (?:un)?logged\b/i.test(text)
  )
    return 'rewrite'
  if (/\badd (?:column )/i.test(text) && volatile.test(text)) return 'rewrite'
  if (/\bvalidate constraint\b|\bset not null\b/i.test(text)) return 'scan'
  const adds = /\badd (?:constraint \w+ )?(?:check|foreign key|unique|primary key|exclude)\b/i.test(text)
  return adds && !/\bnot valid\b|\busing index\b/i.test(text) ? 'scan' : 'none'
}

/**
 * What the text of a step does to tables that exist before it. Function bodies are ignored, because the step does not
 * run them.
 */
export function effectsOf({ text }: Pick<Step, 'text'>): Effect[] {
  const run = text.replace(/create (?:or replace )?function\b.*?\bas \$(\w*)\$.*?\$\1\$/gis, '')
  const made = new Set(
    [...run.matchAll(/\bcreate (?:unlogged )?table (?:if not exists )?(\w+)/gi)].map(([, table]) => table),
  )
  return statementsOf(run).flatMap((statement) =>
    rules.flatMap(({ at, lock, cost }) => {
      const table = at.exec(statement)?.[1]
      return table === undefined || made.has(table)
        ? []
        : [{ table, lock: lock(statement), cost: cost(statement) }]
    }),
  )
}

export const strongest = (effects: readonly Effect[]): Lock =>
  locks.findLast((lock) => effects.some((effect) => effect.lock === lock)) ?? 'ACCESS SHARE'

export const costliest = (effects: readonly Effect[]): Cost =>
  (['rewrite', 'scan'] as const).find((cost) => effects.some((effect) => effect.cost === cost)) ?? 'none'
