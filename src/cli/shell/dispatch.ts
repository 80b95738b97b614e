import pg from 'pg'
import { databaseRefusal, isDamage, isDiskFull } from '../../db/servers/failure.ts'
import { ServiceError, StartError } from '../../errors.ts'
import { wrongUsage } from './command.ts'
import { commands, perhapsCommand } from './groups.ts'
import { help } from './help.ts'
import type { CommandIo } from './output.ts'
import { refusalText } from './refusal.ts'

/** Finds the command and runs it; resolves to the exit code even if the command rejects. */
export async function dispatch([name = 'help', ...args]: readonly string[], io: CommandIo): Promise<number> {
  if (['help', '--help', '-h'].includes(name)) return help(args, io)
  const command = commands.find((one) => one.name === name)
  if (!command) {
    const message = `There is no command "${name}"${perhapsCommand(name)} \`cellkeep help\` lists them.`
    return wrongUsage([], args, io, message)
  }
  // What follows `--` is no option.
  const options = args.slice(0, args.includes('--') ? args.indexOf('--') : undefined)
  const asksHelp = options.findIndex((arg) => arg === '--help' || arg === '-h')
  if (asksHelp >= 0) return help([name, ...args.slice(0, asksHelp)], io)
  const json = options.includes('--json')
  try {
    return await command.run(args, io)
  } catch (error) {
    const ending = explained(error)
    if (ending instanceof StartError) {
      const { reason, message } = ending
      io.stderr.write(`${json ? JSON.stringify({ reason, message }) : message}\n`)
      return ending.exitCode
    }
    if (ending instanceof ServiceError) {
      io.stderr.write(refusalText(ending, json))
      return ending.data.reason === 'service_unavailable' ? 3 : 1
    }
    // Not rethrown: a listener for uncaught exceptions would turn it into exit code 0.
    const message = 'Cellkeep failed unexpectedly. This is a bug in Cellkeep or in the config file.'
    const stack = stackOf(error)
    const bug = json ? JSON.stringify({ reason: 'internal_error', message, stack }) : `${message}\n${stack}`
    io.stderr.write(`${bug}\n`)
    return 1
  }
}

/** A problem of the database that the operator must fix is no bug. */
function explained(error: unknown): unknown {
  if (isDiskFull(error)) return databaseRefusal(error)
  if (!(error instanceof pg.DatabaseError)) return error
  const { code = '', message } = error
  if (isDamage(error))
    return new StartError(
      'database_damaged',
      `The files of the database are damaged or missing (SQLSTATE ${code}: ${message}). Stop the server, keep a copy of the files as they are, and restore the last good backup into an empty database (docs/backup.md).`,
      3,
    )
  if (code === '42501')
    return new StartError(
      'db_permission_denied',
      `The database does not allow this to the role of CELLKEEP_DATABASE_URL: ${message}. Use the role that owns the tables of Cellkeep.`,
      3,
    )
  // A missing table or column.
  if (['42P01', '42703'].includes(code))
    return new StartError(
      'schema_drift',
      `The database lacks what this version needs: ${message}. \`cellkeep doctor\` shows how its schema differs.`,
      3,
    )
  return error
}

const stackOf = (error: unknown): string => (error instanceof Error && error.stack) || String(error)
