import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { emptyDatabase } from '../../test/fresh-database.ts'
import { fold, foldName } from '../accounts/formats.ts'
import { migrate } from './migration/migrate.ts'
import { migrationNames } from './migration/steps.ts'

/** The keys that versions before step 0009 stored. */
const formerFold = (text: string): string =>
  Array.from(text.normalize('NFC'), (point) => point.toLowerCase())
    .join('')
    .normalize('NFC')

async function databaseBefore() {
  const database = await emptyDatabase()
  onTestFinished(database.drop)
  await migrate(database.connection, { only: migrationNames().slice(0, 7) })
  return { client: await database.open(), database }
}

test('every name and e-mail gets the key that a search and a login use', async () => {
  const { client, database } = await databaseBefore()
  // Above this, only tags, variation selectors and private use are assigned.
  const changing = Array.from({ length: 0x40000 }, (_, code) => code)
    .filter((code) => code > 0 && (code < 0xd800 || code > 0xdfff))
    .map((code) => String.fromCodePoint(code))
    .filter((point) => {
      const former = formerFold(point)
      return foldName(point) !== former || fold(point) !== former
    })
  // The Unicode version of the database may be older than that of JavaScript, and lack a few letters.
  const known = await client.query<{ point: string }>(
    `select point from unnest($1::text[], $2::text[]) as t (point, form) where normalize(point, NFKC) = form`,
    [changing, changing.map((point) => point.normalize('NFKC'))],
  )
  const points = known.rows.map(({ point }) => point)
  expect(points.length).toBeGreaterThan(3000)
  expect(changing.length - points.length).toBeLessThan(200)
  const marks = ['\u0301', '\u0307', '\u0308', '\u0345', 'a', 'Σ']
  const text = fc.string({ unit: fc.constantFrom(...points, ...marks), minLength: 2, maxLength: 12 })
  const names = [
    ...points,
    ...points.flatMap((point) => ['\u0301', '\u0307', '\u0345'].map((mark) => point + mark)),
    ...fc.sample(text, { numRuns: 5000, seed: 7 }),
  ]
  const owner = await client.query(
    `insert into account (username, password_hash) values ('owner', 'x') returning id`,
  )
  await client.query(
    `insert into actor (account_id, name, name_key) select $1, name, key from unnest($2::text[], $3::text[]) as t (name, key)`,
    [owner.rows[0].id, names, names.map(formerFold)],
  )
  const emails = [...new Set(names.map((name) => `${name.replace(/[\s@]/g, '')}@x.io`))]
  await client.query(
    `insert into invite (email, email_key, claimed_at) select email, key, now() from unnest($1::text[], $2::text[]) as t (email, key)`,
    [emails, emails.map(formerFold)],
  )
  await migrate(database.connection)
  const actors = await client.query<{ name: string; name_key: string }>('select name, name_key from actor')
  const wrong = actors.rows.filter(({ name, name_key }) => name_key !== foldName(name))
  expect(wrong.slice(0, 5)).toEqual([])
  const invites = await client.query<{ email: string; email_key: string }>(
    'select email, email_key from invite',
  )
  expect(invites.rows.filter(({ email, email_key }) => email_key !== fold(email)).slice(0, 5)).toEqual([])
  expect(actors.rows).toHaveLength(names.length)
})

test('of accounts whose e-mails get the same key, one keeps it and none is lost', async () => {
  const { client, database } = await databaseBefore()
  const made: [string, string, boolean, string, string | null][] = [
    ['older', 'ς@x.io', false, '2020-01-01', null],
    ['newer', 'Σ@x.io', false, '2021-01-01', null],
    ['unverified', 'µ@x.io', false, '2020-01-01', null],
    ['verified', 'μ@x.io', true, '2021-01-01', null],
    ['deleted', 'ſ@x.io', true, '2020-01-01', '2020-02-01'],
    ['live', 's@x.io', false, '2021-01-01', null],
    ['alone', 'ος@x.io', false, '2020-01-01', null],
    ['plain', 'plain@x.io', false, '2020-01-01', null],
  ]
  for (const [username, email, verified, created, deleted] of made)
    await client.query(
      `insert into account (username, email, email_key, email_verified, password_hash, created_at, deleted_at)
       values ($1, $2, $3, $4, 'x', $5, $6)`,
      [username, email, formerFold(email), verified, created, deleted],
    )
  for (const [email, expires, created] of [
    ['ς@y.io', '2020-02-01', '2020-01-01'],
    ['σ@y.io', null, '2021-01-01'],
  ])
    await client.query(
      'insert into invite (email, email_key, expires_at, created_at) values ($1, $2, $3, $4)',
      [email, formerFold(email as string), expires, created],
    )
  await migrate(database.connection)
  const accounts = await client.query('select username, email_key from account order by email_key')
  expect(Object.fromEntries(accounts.rows.map((row) => [row.username, row.email_key]))).toEqual({
    older: 'σ@x.io',
    newer: ' σ@x.io',
    verified: 'μ@x.io',
    unverified: ' µ@x.io',
    live: 's@x.io',
    deleted: ' ſ@x.io',
    alone: 'οσ@x.io',
    plain: 'plain@x.io',
  })
  const invites = await client.query('select email_key from invite order by created_at')
  expect(invites.rows.map((row) => row.email_key)).toEqual([' ς@y.io', 'σ@y.io'])
})
