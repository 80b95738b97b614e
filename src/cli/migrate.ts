import { migrate as runMigrations } from '../db/migrate.ts'
import { command } from './command.ts'
import { withDatabase } from './with-service.ts'

export const migrate = command({
  name: 'migrate',
  usage: '[--check]',
  summary:
    'Migrate the database to the schema of this version; --check only tells whether it is (exit code 3: no).',
  options: { check: { type: 'boolean' } },
  run: ({ options: { check = false }, out, io }) =>
    withDatabase(
      io,
      async ({ connection }) => {
        const { applied } = await runMigrations(connection, { mode: check ? 'check' : 'auto' })
        const text =
          applied.length > 0 ? applied.map((name) => `applied ${name}`).join('\n') : 'The schema is current.'
        out.result({ applied }, text)
      },
      { makes: !check },
    ),
})
