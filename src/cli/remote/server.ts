import { rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { actions } from '../../actions.ts'
import { CellkeepError, createClient, TransportError } from '../../client/client.ts'
import { loadConfig } from '../../config/file.ts'
import { httpUrl } from '../../config/ip.ts'
import { codeOf } from '../../db/servers/failure.ts'
import { ServiceError, StartError } from '../../errors.ts'
import { readPrivateFile, replacePrivateFile } from '../../files/private-file.ts'
import { unwritable } from '../../files/unwritable.ts'
import type { Reason } from '../../reasons.ts'
import { meant } from '../../wire/closest.ts'
import { isPlainObject } from '../../wire/input.ts'
import type { CommandIo } from '../shell/output.ts'

/** A token that `cellkeep login` keeps, by the URL of its server. */
export type Kept = { token: string; token_id: string; username: string; expires_at: string | null }

/** The server that a command calls: `--url`, else CELLKEEP_URL, else the one that this directory configures. */
export async function serverUrl(io: CommandIo, option: string | undefined): Promise<string> {
  const given = option ?? (io.env.CELLKEEP_URL || undefined)
  if (given !== undefined) {
    // fetch takes no URL with a user or password.
    if (!URL.canParse(given) || !/^https?:\/\/[^@?#]*$/i.test(given))
      throw new StartError(
        'invalid_url',
        `${withoutUser(given)} is not the URL of a server, such as https://example.org.`,
        2,
      )
    return given.endsWith('/') ? given.slice(0, -1) : given
  }
  const { config } = await loadConfig({ env: io.env, cwd: io.cwd, mode: 'command' })
  const host = ['0.0.0.0', '::'].includes(config.host) ? '127.0.0.1' : config.host
  return httpUrl(host, config.port)
}

/** Keeps user and password out of messages. */
const withoutUser = (url: string): string => {
  const end = url.lastIndexOf('@')
  return end < 0 ? url : `${/^https?:\/\//i.exec(url)?.[0] ?? ''}…${url.slice(end)}`
}

/**
 * CELLKEEP_TOKEN, else what `cellkeep login` keeps for this server. Rejects if the server does not know it, because a
 * call with it would be anonymous.
 */
export async function tokenFor(io: CommandIo, url: string): Promise<string | undefined> {
  const given = io.env.CELLKEEP_TOKEN || undefined
  const token = given ?? (await readKept(io))[url]?.token
  if (token === undefined) return undefined
  const known = await createClient({ url, token }).try.account_verify()
  if (known.ok || known.error.reason !== 'authentication_required') return token
  const [what, next] = given
    ? ['CELLKEEP_TOKEN', 'Set another one, or unset it to call anonymously.']
    : [
        'The token of `cellkeep login`',
        `Run \`cellkeep login --url ${url}\`, or \`cellkeep logout --url ${url}\` to call anonymously.`,
      ]
  throw new StartError(
    'authentication_required',
    `${what} was revoked, has expired or is not one of ${url}. ${next}`,
    1,
  )
}

const file = ({ env }: CommandIo): string =>
  join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'cellkeep', 'credentials.json')

const keptMax = 65_536

export async function readKept(io: CommandIo): Promise<Record<string, Kept>> {
  const path = file(io)
  const read = await readPrivateFile(path, keptMax)
  if ('missing' in read) return {}
  const unreadable = (problem: string): StartError =>
    new StartError(
      'credentials_unreadable',
      `${path} ${problem}. Delete it and run \`cellkeep login\` again.`,
      1,
    )
  if ('problem' in read) throw unreadable(read.problem)
  try {
    const kept: unknown = JSON.parse(read.content)
    if (isPlainObject(kept)) return kept as Record<string, Kept>
  } catch {}
  throw unreadable('is not a JSON object')
}

/** Rejects if no token could be kept; leaves no file. */
export async function tryKeeping(io: CommandIo): Promise<void> {
  const path = file(io)
  const trial = `${path}.${process.pid}`
  await replacePrivateFile(trial, '').catch(unwritable(path))
  await rm(trial, { force: true })
}

export async function writeKept(io: CommandIo, kept: Record<string, Kept>): Promise<string> {
  const path = file(io)
  await replacePrivateFile(path, `${JSON.stringify(kept, null, 2)}\n`).catch(unwritable(path))
  return path
}

/** Runs calls to a server; turns refusals, and a server that does not answer, into errors of the command line. */
export async function asked<T>(url: string, calls: () => Promise<T>, method = ''): Promise<T> {
  try {
    return await calls()
  } catch (error) {
    if (error instanceof TransportError) throw unreachable(url, error)
    if (error instanceof CellkeepError && error.reason === 'method_not_found')
      throw unknownMethod(method, await methodsOf(url))
    if (error instanceof CellkeepError) throw refusalOf(url, error)
    throw error
  }
}

/** The methods of a server, those of its consumer included; the built-in ones if it does not list them. */
async function methodsOf(url: string): Promise<string[]> {
  const described = await createClient({ url }).try['rpc.discover']()
  return described.ok ? described.result.methods.map(({ name }) => name) : Object.keys(actions)
}

export const unknownMethod = (method: string, known: readonly string[] = []): StartError =>
  new StartError(
    'method_not_found',
    `The server has no method ${method}, or its feature is off${meant(method, known, '.')} docs/api.md lists the built-in methods, /api/openrpc.json lists all.`,
    1,
  )

function refusalOf(url: string, { reason, status, data }: CellkeepError): Error {
  if (reason === 'authentication_required')
    return new StartError(
      'authentication_required',
      `You are not signed in to ${url}, or the token was revoked or has expired. Run \`cellkeep login --url ${url}\`, or set CELLKEEP_TOKEN.`,
      1,
    )
  return new ServiceError(-32000, { ...data, reason: reason as Reason }, status)
}

const unreachable = (url: string, cause: TransportError): StartError =>
  new StartError(
    'unreachable',
    cause.status === 0
      ? (tlsProblem(url, cause) ??
          `No server answers at ${url}. Start it with \`cellkeep start\`, or name another address with --url or CELLKEEP_URL.`)
      : `What answers at ${url} (status ${cause.status}) is not Cellkeep. Name another address with --url or CELLKEEP_URL.`,
    3,
    { cause },
  )

/** What is wrong with TLS; undefined if nothing answered. The error of `fetch` has it only as its cause. */
function tlsProblem(url: string, { cause }: TransportError): string | undefined {
  const reason = cause instanceof Error ? cause.cause : undefined
  const code = codeOf(reason)
  if (code.startsWith('ERR_SSL_'))
    return `What answers at ${url} speaks no TLS that fits. A server without a proxy has none: write http:// instead of https://.`
  if (/CERT|SIGNATURE/.test(code) && reason instanceof Error)
    return `The certificate of ${url} is not accepted: ${reason.message}. If it is signed by an authority of your own, name the file of that authority in NODE_EXTRA_CA_CERTS.`
  return undefined
}
