import { hostname } from 'node:os'
import { CellkeepError, type Client, createClient } from '../../client/client.ts'
import { ServiceError, StartError } from '../../errors.ts'
import { scopeNamed } from '../../tokens/tokens.ts'
import { type Command, command, numberIn, WrongUsage } from '../shell/command.ts'
import { lineFrom } from '../shell/confirm.ts'
import type { CommandIo } from '../shell/output.ts'
import { readPassword } from '../shell/password.ts'
import { refusalText } from '../shell/refusal.ts'
import { asked, type Kept, readKept, serverUrl, tryKeeping, writeKept } from './server.ts'

const scopes =
  'SCOPE is full (the default), read_only, or the methods that the token may call, such as cell_get,cell_list.'

/** Signs in once, to make a token; the session ends at once and the password is kept nowhere. */
export const login: Command = command({
  name: 'login',
  usage: '[--url URL] [--username NAME] [--scope SCOPE] [--days N]',
  summary: 'Sign in to a server, and keep a token for `call` and `tail` that only you can read.',
  details: `${scopes} It expires after N days (default 90).\nThe token is kept in ~/.config/cellkeep/credentials.json. In scripts set CELLKEEP_TOKEN instead.\n\nExample:\n  cellkeep login --url https://cells.example.org --username ada`,
  options: {
    url: { type: 'string' },
    username: { type: 'string' },
    scope: { type: 'string', default: 'full' },
    days: { type: 'string', default: '90' },
  },
  async run({ options, io, out }) {
    const days = numberIn(options.days)
    if (!Number.isInteger(days) || days < 1)
      throw new WrongUsage('--days takes a number of days, such as 90.')
    const url = await serverUrl(io, options.url)
    const username = options.username ?? (await askUsername(io, url))
    const password = await readPassword(io, `Password of ${username}: `)
    // Before a token is made that could not be kept.
    await readKept(io)
    await tryKeeping(io)
    const client = createClient({ url, jar: true })
    const made = await asked(url, async () => {
      await signIn(client, io, { username, password })
      try {
        return await client.account_token_create({
          name: `cellkeep on ${hostname()}`.slice(0, 60),
          scope: scopeNamed(options.scope),
          lifetime: { kind: 'ttl', days },
        })
      } finally {
        await client.account.logout()
      }
    })
    const { token, expires_at } = made
    const path = await writeKept(io, {
      ...(await readKept(io)),
      [url]: { token, token_id: made.id, username, expires_at },
    })
    out.result(
      { url, username, token_id: made.id, expires_at, path },
      [`Signed in to ${url} as ${username}, until ${expires_at}.`, 'Try: cellkeep call account_verify'].join(
        '\n',
      ),
    )
  },
})

/** Asks for the code of a second factor if there is one; it can only be typed at a terminal. */
async function signIn(
  client: Client,
  io: CommandIo,
  given: { username: string; password: string },
): Promise<void> {
  try {
    await client.account.login(given)
  } catch (error) {
    const isAsked = error instanceof CellkeepError && error.reason === 'second_factor_required'
    if (!isAsked || !io.stdin.isTTY) throw error
    const code = (await readPassword(io, 'Code from the authenticator app, or a recovery code: ')).trim()
    const isTotp = code.replaceAll(' ', '').length === 6
    await client.account.second_factor(isTotp ? { totp: code } : { recovery_code: code })
  }
}

export const logout: Command = command({
  name: 'logout',
  usage: '[--url URL]',
  summary: 'Revoke the token that `cellkeep login` keeps for a server, and forget it.',
  details:
    'A token cannot revoke itself, so at a terminal this asks for your password. Without the password, the token is only\nforgotten: it stays valid until it expires or `cellkeep token revoke TOKEN` ends it.',
  options: { url: { type: 'string' } },
  async run({ options, io, out }) {
    const url = await serverUrl(io, options.url)
    const { [url]: mine, ...others } = await readKept(io)
    if (!mine) return out.result({ url, forgotten: false, revoked: false }, `No token is kept for ${url}.`)
    const ended = await end(mine, url, io)
    await writeKept(io, others)
    const { token_id, expires_at } = mine
    const rest = `The token stays valid until ${expires_at}. To end it now, run \`cellkeep token revoke ${token_id}\`.`
    out.result({ url, forgotten: true, token_id, ...ended }, [
      `Forgotten: ${url}.`,
      ended.revoked ? 'The token is revoked.' : rest,
    ])
  },
})

/** Ends the token if the password is typed. A refusal is reported, and does not prevent forgetting the token. */
async function end({ username, token_id }: Kept, url: string, io: CommandIo): Promise<{ revoked: boolean }> {
  const isAsked = io.stdin.isTTY === true
  const password = isAsked
    ? await readPassword(io, `Password of ${username} (leave empty to forget the token only): `)
    : ''
  if (password === '') return { revoked: false }
  const client = createClient({ url, jar: true })
  try {
    return await asked(url, async () => {
      await signIn(client, io, { username, password })
      try {
        const { revoked } = await client.account_token_revoke({ token_id })
        return { revoked }
      } finally {
        await client.account.logout()
      }
    })
  } catch (error) {
    if (error instanceof ServiceError) io.stderr.write(refusalText(error, false))
    else if (error instanceof StartError && error.reason !== 'interrupted')
      io.stderr.write(`${error.message}\n`)
    else throw error
    return { revoked: false }
  }
}

async function askUsername({ stdin, stderr }: CommandIo, url: string): Promise<string> {
  if (!stdin.isTTY)
    throw new WrongUsage(
      'Without a terminal, --username is required; the password is read from standard input.',
    )
  stderr.write(`Username or e-mail at ${url}: `)
  const name = await lineFrom(stdin)
  if (name === undefined) throw new StartError('interrupted', '\nInterrupted; nothing was changed.', 1)
  return name.trim()
}
