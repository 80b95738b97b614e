import type { z } from 'zod'
import type { MutationContext, QueryContext } from '../core/declare.ts'
import type { Method, OutputOf } from '../core/method.ts'
import { singleWithin } from '../core/single.ts'
import type { JoinedRead, Queryable, ReadOnly, Sql } from '../db/db.ts'
import { sql } from '../db/sql.ts'
import { refusal } from '../errors.ts'
import { parseInput } from '../wire/input.ts'
import { inOnePiece, type Text } from '../wire/json-text.ts'
import { parseJson } from '../wire/parse-json.ts'
import { me, type tiers, tiersOfMany } from './access.ts'
import { cell_create } from './cell_create.ts'
import { cell_delete } from './cell_delete.ts'
import { cell_get } from './cell_get.ts'
import { cell_update } from './cell_update.ts'
import { cell_grant_create } from './grants/cell_grant_create.ts'
import { cell_list } from './list/cell_list.ts'

/** Tools for a consumer's own methods on cells: the access rule as SQL, and the functions of the built-in methods. */

type Anyone = { account: 'optional'; actor: 'optional' }
type Actor = { account: 'required'; actor: 'required' }
type Tools = 'app' | 'role_grants'

/** The context of a handler, as far as reading cells needs it. Without an actor the caller is anonymous. */
export type CellReader = Pick<QueryContext<Anyone, never>, Tools | 'actor'> & { db: Queryable | ReadOnly }
/** The context of a mutation that requires an account and an actor. */
export type CellWriter = Pick<
  MutationContext<Actor, never>,
  Tools | 'account' | 'actor' | 'db' | 'audit' | 'notify' | 'afterCommit'
>

/**
 * Cells for the handler of a method: `await cells.create(context, { data })`. The caller is the acting actor of the
 * method; access rule, hooks, quota and audit rows are those of the built-in method, in the transaction of the
 * handler. Limiters and token scopes are those of the handler's own method.
 */
export const cells = {
  get: own<typeof cell_get, CellReader>(cell_get),
  list: own<typeof cell_list, CellReader>(cell_list),
  create: own<typeof cell_create, CellWriter>(cell_create),
  update: own<typeof cell_update, CellWriter>(cell_update),
  delete: own<typeof cell_delete, CellWriter>(cell_delete),
  /** Shares a cell with an actor or the holders of a role. */
  grant: own<typeof cell_grant_create, CellWriter>(cell_grant_create),
}

/** Within a transaction a read shares no statement with other calls, because it must see what the transaction wrote. */
const alone =
  (db: Queryable) =>
  <K extends readonly (string | null)[], V>(read: JoinedRead<K, V>, key: K): Promise<V | undefined> =>
    db.first<V>(read.statement([key]))

const inTransactions = new WeakMap<Queryable, Queryable & Pick<ReadOnly, 'joined'>>()

/** The database of the built-in methods in a transaction: one object, by which they know it again. */
function inTransaction(db: Queryable): Queryable {
  const known = inTransactions.get(db) ?? { ...db, joined: alone(db) }
  inTransactions.set(db, known)
  return known
}

type Own<X extends Method, C> = (context: C, input: z.input<X['input']>) => Promise<OutputOf<X>>

function own<X extends Method, C extends CellReader>(action: Method): Own<X, C> {
  return async (context, input) => {
    if (action.side_effects && !('audit' in context && context.actor))
      throw new TypeError('Cells are written in a mutation() whose auth requires an actor; declare it so.')
    const parsed = parseInput(action.input, input)
    const { db } = context
    const inner = {
      ...context,
      fail: refusal,
      // The handler goes on, so it must not be committed here.
      single: singleWithin(db as Queryable, (context as unknown as CellWriter).audit),
      db: 'joined' in db ? db : inTransaction(db),
    } as never
    const refined = action.refine ? action.refine(parsed as never, inner) : parsed
    const answer = await action.handler(refined as never, inner)
    return (action.json_text ? parseJson(inOnePiece(answer as Text)) : answer) as OutputOf<X>
  }
}

export type CellTier = keyof Pick<ReturnType<typeof tiers>, 'view' | 'edit' | 'manage'>

/**
 * A condition: the caller holds this tier on the row of `cell` with this alias. Deleted cells never pass.
 * `` sql`select count(*)::int as n from cell c where c.kind = 'page' and ${visibleCells(context, 'c')}` ``
 */
export function visibleCells(
  caller: { actor: { id: string } | null },
  alias = 'cell',
  tier: CellTier = 'view',
): Sql {
  if (!/^[a-z_][a-z0-9_]*$/.test(alias) || taken.includes(alias))
    throw new TypeError(`"${alias}" cannot be the alias of cell here; take another one, such as c.`)
  if (!['view', 'edit', 'manage'].includes(tier))
    throw new TypeError(`"${tier}" is no tier; take view, edit or manage.`)
  // The caller does not depend on the row, so it is read once for a statement.
  return sql`exists (with ${me(caller.actor?.id ?? null)} select from me where ${tiersOfMany(alias)[tier]})`
}

/** Aliases that the access rule uses itself. */
const taken = ['me', 'g', 'k', 'of_cell', 'cell_grant']
