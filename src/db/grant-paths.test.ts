import { expect, onTestFinished, test } from 'vitest'
import { emptyDatabase } from '../../test/fresh-database.ts'
import { migrate } from './migration/migrate.ts'
import { migrationNames } from './migration/steps.ts'

test('grants that were given before have the path of their cell', async () => {
  const database = await emptyDatabase()
  onTestFinished(database.drop)
  const names = migrationNames()
  await migrate(database.connection, { only: names.filter((name) => name < '0030') })
  const client = await database.open()
  // More than one batch; every third cell has a path.
  await client.query(`
    insert into cell (data, data_bytes, path) select '{}', 2, case when i % 3 = 0 then 'docs/' || i end
    from generate_series(1, 3000) i`)
  await client.query(`
    insert into cell_grant (cell_id, level, role, cell_created_at)
    select id, 'viewer', role, created_at from cell, (values ('a'), ('b')) r (role)`)
  const { applied } = await migrate(database.connection, { mode: 'run' })
  // Expanding ones run before those that fill or index.
  expect(applied.toSorted()).toEqual(names.filter((name) => name >= '0030'))
  const { rows } = await client.query(`
    select count(*)::int as grants, count(g.cell_path)::int as paths,
      count(*) filter (where g.cell_path is distinct from c.path)::int as wrong
    from cell_grant g join cell c on c.id = g.cell_id`)
  expect(rows).toEqual([{ grants: 6000, paths: 2000, wrong: 0 }])
})
