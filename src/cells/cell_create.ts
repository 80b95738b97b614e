import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { mutation } from '../core/declare.ts'
import type { Work } from '../core/mutate.ts'
import type { SharedStatement } from '../core/single.ts'
import { briefly, sql } from '../db/db.ts'
import { unplanned } from '../db/unplanned.ts'
import type { CellData } from '../registry/hooks.ts'
import { holdsAdmin } from '../roles/admin.ts'
import { OrNull } from '../wire/types.ts'
import { me } from './access.ts'
import { Cell, cellColumns, cellWriteError, Kind, Path, Visibility } from './cells.ts'
import { compact, Data } from './data.ts'
import { mayCreate, validated } from './hooks.ts'
import {
  cellsUnderWay,
  counted,
  loneShard,
  noQuota,
  ownShard,
  quotaOf,
  room,
  sharedAmountColumns,
  sharedAmounts,
  sharedCounted,
  sharedRoom,
  storeWithin,
  type Way,
  type Write,
} from './usage.ts'

export const cell_create = mutation({
  doc: 'Create a cell owned by the acting actor. Only admins may give it a path.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_create',
  rate_limit: 'account',
  rate_limit_group: 'cell_create',
  input: z.strictObject({
    data: Data,
    kind: OrNull(Kind),
    visibility: Visibility.default('private'),
    path: OrNull(Path),
  }),
  output: z.object({ cell: Cell }),
  errors: [
    'cell_path_admin_only',
    'cell_kind_in_data',
    'cell_kind_empty',
    'cell_data_invalid',
    'cell_create_forbidden',
    'cell_path_taken',
    'cell_quota_exceeded',
    'account_vanished',
  ],
  async handler(
    { data: sent, kind = null, visibility, path = null },
    { app, account, actor, role_grants, db, single, fail },
  ) {
    app.disk.admit()
    const is_admin = holdsAdmin(role_grants)
    if (path !== null && !is_admin) throw fail('cell_path_admin_only')
    if (Object.hasOwn(sent, 'kind')) throw fail('cell_kind_in_data')
    if (kind === '') throw fail('cell_kind_empty')
    const data = await validated(app, kind, sent)
    const caller = { actor_id: actor.id, account_id: account.id, is_admin }
    const wanted = { operation: 'create' as const, kind, visibility, path, data, source_id: null }
    if (!(await mayCreate(app, caller, wanted))) throw fail('cell_create_forbidden')
    const quota = is_admin ? noQuota : quotaOf(app.config)
    const cell = await insertCell(
      { db, single },
      actor.id,
      { kind, visibility, path, data },
      {
        account_id: account.id,
        quota,
        shard: app.gate.isAlone(account.id) ? loneShard : ownShard,
      },
    )
    if (!cell) throw fail('cell_path_admin_only')
    return { cell }
  },
})

type NewCell = { kind: string | null; visibility: string; path: string | null; data: CellData }

/** Undefined if a path is given and the actor is not an admin when the statement runs. */
async function insertCell(
  { db, single }: Pick<Work, 'db' | 'single'>,
  actor_id: string,
  cell: NewCell,
  counting: Omit<Write, 'amount'>,
): Promise<Cell | undefined> {
  const { kind, visibility, path, data } = cell
  const { text, bytes } = compact(data)
  const id = randomUUID()
  const values = sql`${id}::uuid, ${kind}::text, ${visibility}::text, ${path}::text, ${text}::jsonb, ${bytes}::int,
    ${actor_id}::uuid`
  const write = { ...counting, amount: { cells: 1, bytes } }
  const mayShare = path === null && bytes <= sharedBytesMax
  const keyOf = (way: Way): Key => ({ id, kind, visibility, text, actor_id, write, way })
  try {
    return await storeWithin(db, write, cellsUnderWay, (way) =>
      single<Cell, Key>(
        sql`${path === null ? sql.empty : sql`${me(actor_id)},`} ${room(write, way)}, written as (
          insert into cell as c (id, kind, visibility, path, data, data_bytes, created_by)
          select ${values} from room ${path === null ? sql.empty : sql`, me where me.is_admin`}
          returning ${cellColumns}
        ), ${counted(write, way)}`,
        'written',
        (audit) => audit('cell_create', { cell_id: id }),
        mayShare ? { write: sharedInsert, key: keyOf(way) } : undefined,
      ),
    )
  } catch (error) {
    throw cellWriteError(error, 'data')
  }
}

type Key = {
  id: string
  kind: string | null
  visibility: string
  text: string
  actor_id: string
  write: Write
  way: Way
}

/** Max bytes of `data` in a shared statement. */
const sharedBytesMax = 8192

/** Inserts cells without a path, for accounts that have room for all of their cells in the statement. */
const sharedInsert: SharedStatement<Key> = {
  max: 16,
  statement: (keys) => {
    const ids = keys.map(({ id }) => id)
    return sql`asked as (
      select asked.* from unnest(${unplanned(ids, 'uuid[]')}, ${keys.map(({ kind }) => kind)}::text[],
        ${keys.map(({ visibility }) => visibility)}::text[], ${keys.map(({ text }) => text)}::text[],
        ${keys.map(({ actor_id }) => actor_id)}::uuid[], ${sharedAmounts(keys)}
      ) with ordinality as asked (id, kind, visibility, data, actor_id, ${sharedAmountColumns}, nth), ${briefly}
    ), ${sharedRoom}, written as (
      insert into cell as c (id, kind, visibility, data, data_bytes, created_by)
      select id, kind, visibility, data::jsonb, bytes, actor_id from asked join room using (account_id)
      returning ${cellColumns}
    ), ${sharedCounted('id')}, stored as (select asked.nth, written.* from written join asked using (id))`
  },
}
