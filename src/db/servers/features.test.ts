import type pg from 'pg'
import { afterAll, expect, it } from 'vitest'
import { migratedDatabase } from '../../../test/fresh-database.ts'
import { missingFeatures } from './features.ts'

const database = await migratedDatabase()
afterAll(database.drop)
const [one, other] = [await database.open(), await database.open()]

/** A session as of an engine that understands some statements differently. */
const lacking = (client: pg.Client, change: (text: string) => string): pg.Client =>
  new Proxy(client, {
    get: (target, key) => {
      if (key === 'query') return (text: string) => target.query(change(text))
      const value = Reflect.get(target, key)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

it('PostgreSQL has them all, and keeps nothing of their trial', async () => {
  const tables = `select relname from pg_class where relname like 'ck_probe%'`
  expect(await missingFeatures(one, other)).toEqual([])
  expect((await one.query(tables)).rows).toEqual([])
})

it.each<[string, string | RegExp, string]>([
  ['partial unique indexes', /where b;/, ';'],
  ['unique nulls not distinct', 'unique nulls not distinct', 'unique'],
  ['collate "C" that orders bytes', 'collate "C"', 'desc'],
  ['generated columns', 'generated always as (a * 2) stored', 'default 8'],
  ['identity columns', 'generated always as identity', 'default 7'],
  ['exception blocks of PL/pgSQL that undo', `raise exception 'undo';`, ''],
  ['statements that write within WITH', 'delete from', 'select a from'],
  ['hashtextextended', /hashtextextended/g, 'no_such_function'],
  ['skip locked', 'skip locked', 'nowait'],
  ['LISTEN that hears NOTIFY', /^notify /, 'notify x'],
])('%s: an engine without', async (name, of, instead) => {
  const engine = (client: pg.Client) => lacking(client, (text) => text.replace(of, instead))
  expect(await missingFeatures(engine(one), engine(other))).toEqual([name])
})

it('what tells nothing about the engine is no missing feature', async () => {
  const ended = await database.open()
  await ended.end()
  await expect(missingFeatures(ended, other)).rejects.toThrow(/closed/)
})
