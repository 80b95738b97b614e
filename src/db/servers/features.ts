import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import pg from 'pg'

/**
 * Each script creates what it needs in a transaction that is rolled back; its last row says whether the feature exists.
 */
const scripts: Readonly<Record<string, string>> = {
  'partial unique indexes': `
    create table probe (a int, b bool); create unique index on probe (a) where b;
    insert into probe values (1, false), (1, false), (1, true);
    insert into probe values (1, true) on conflict do nothing;
    select count(*) = 3 as holds from probe`,
  'unique nulls not distinct': `
    create table probe (a int, unique nulls not distinct (a)); insert into probe values (null);
    insert into probe values (null) on conflict do nothing;
    select count(*) = 1 as holds from probe`,
  'collate "C" that orders bytes': `
    select array_agg(a order by a collate "C") = '{A,_,a,ä}'::text[] as holds from unnest('{ä,a,_,A}'::text[]) a`,
  'generated columns': `
    create table probe (a int, b int generated always as (a * 2) stored); insert into probe values (4);
    update probe set a = 5; select b = 10 as holds from probe`,
  'identity columns': `
    create table probe (id int generated always as identity, a int); insert into probe (a) values (1), (2);
    select count(distinct id) = 2 as holds from probe`,
  'exception blocks of PL/pgSQL that undo': `
    create table probe (a int);
    do $$ begin
      insert into probe values (1);
      begin insert into probe values (2); raise exception 'undo'; exception when others then null; end;
    end $$;
    select count(*) = 1 as holds from probe`,
  'statements that write within WITH': `
    create table probe (a int); insert into probe values (1);
    with gone as (delete from probe returning a) insert into probe select a + 1 from gone;
    select array_agg(a) = '{2}' as holds from probe`,
  hashtextextended: `
    select hashtextextended('a', 0) = hashtextextended('a', 0) and hashtextextended('a', 0) <> hashtextextended('b', 0)
      as holds`,
}

/** The features that the server lacks, found by trying them on two sessions of the same database. */
export async function missingFeatures(one: pg.Client, other: pg.Client): Promise<string[]> {
  const missing: string[] = []
  for (const [name, script] of Object.entries(scripts)) {
    const table = pg.escapeIdentifier(`ck_probe_${randomBytes(6).toString('hex')}`)
    const holds = one.query(`begin read write; ${script.replaceAll(/\bprobe\b/g, table)}`).then(lastHolds)
    if (!(await orMissing(holds))) missing.push(name)
    await one.query('rollback')
  }
  if (!(await orMissing(skipsLocked(one, other)))) missing.push('skip locked')
  if (!(await orMissing(hears(one, other)))) missing.push('LISTEN that hears NOTIFY')
  return missing
}

/** A script has a result for each of its statements. */
const lastHolds = (results: pg.QueryResult | pg.QueryResult[]): boolean =>
  [results].flat().at(-1)?.rows[0].holds

/** A refusal means that the server lacks the feature; other errors prove nothing. */
const orMissing = (holds: Promise<boolean>): Promise<boolean> =>
  holds.catch((error: pg.DatabaseError) => {
    if (/^(0A|2|42|55P03|57014|P0|XX)/.test(error.code ?? '') && error.code !== '42501') return false
    throw error
  })

async function skipsLocked(one: pg.Client, other: pg.Client): Promise<boolean> {
  const skips = async (client: pg.Client): Promise<boolean> =>
    [await client.query('begin read write; select from cluster for update skip locked')].flat().at(-1)
      ?.rowCount === 0
  try {
    // The first skips the row too if another session holds it.
    return (await skips(one)) || (await skips(other))
  } finally {
    await one.query('rollback')
    await other.query('rollback')
  }
}

const hearMs = 2_000

async function hears(one: pg.Client, other: pg.Client): Promise<boolean> {
  const channel = `ck_probe_${randomBytes(6).toString('hex')}`
  await one.query(`listen ${channel}`)
  const heard = once(one, 'notification', { signal: AbortSignal.timeout(hearMs) }).then(
    () => true,
    () => false,
  )
  await other.query(`notify ${channel}`)
  return await heard
}
