import type { AuditEvent } from '../../audit/entry.ts'
import { AuditStreamError, auditStream } from '../../client/audit-stream.ts'
import { createClient } from '../../client/client.ts'
import { StartError } from '../../errors.ts'
import { events } from '../../events.ts'
import { fieldText, printable } from '../../log/text.ts'
import type { Reason } from '../../reasons.ts'
import { closest } from '../../wire/closest.ts'
import { type Command, command, numberIn, WrongUsage } from '../shell/command.ts'
import { meaningOf } from '../shell/refusal.ts'
import { asked, serverUrl, tokenFor } from './server.ts'

export const tail: Command = command({
  name: 'tail',
  usage: '[--after SEQ] [--event-type TYPE] [--url URL]',
  summary: 'Follow the audit log of a running server; needs the token of an admin.',
  details:
    'Starts with the next row, or after row SEQ, and reconnects when the server restarts. With --json each row is a\nline of JSON. Ctrl-C stops it.\n\nExamples:\n  cellkeep tail --event-type login\n  cellkeep tail --after 0 --json',
  options: { after: { type: 'string' }, 'event-type': { type: 'string' }, url: { type: 'string' } },
  async run({ options, io, out }) {
    const after = options.after === undefined ? undefined : numberIn(options.after)
    if (after !== undefined && !(Number.isSafeInteger(after) && after >= 0))
      throw new WrongUsage('--after takes the seq of a row, such as 0.')
    const type = options['event-type'] || undefined
    // The server may have types of its own, so this is only a hint.
    const near = type !== undefined && !Object.hasOwn(events, type) && closest(type, Object.keys(events))
    if (near) io.stderr.write(`${type} is not a built-in event; did you mean ${near}?\n`)
    const url = await serverUrl(io, options.url)
    const token = await tokenFor(io, url)
    // The stream waits for a server that is away; this call reports a wrong address at once.
    await asked(url, () => createClient({ url, token }).account.status())
    const end = new AbortController()
    const stop = (): void => end.abort()
    process.once('SIGINT', stop)
    // The reader of standard output is gone, as with `head`.
    process.stdout.once('error', stop)
    try {
      const rows = auditStream({ url, token, after, signal: end.signal })
      for await (const item of rows) {
        if (item.type === 'gap') io.stderr.write(`${gapText(item)}\n`)
        else if (type === undefined || item.params.event_type === type)
          io.stdout.write(out.json ? `${JSON.stringify(item.params)}\n` : lineOf(item.params))
      }
    } catch (error) {
      if (end.signal.aborted) return
      throw error instanceof AuditStreamError ? refused(url, error) : error
    } finally {
      process.off('SIGINT', stop)
      process.stdout.off('error', stop)
    }
  },
})

const gapText = ({ after, resumed_after }: { after: number; resumed_after: number }): string =>
  resumed_after > after
    ? `Rows ${after + 1} to ${resumed_after} are gone.`
    : `The log ends at row ${resumed_after}, before row ${after}; new rows follow.`

/** `12:03:04 41 role_grant_create failure account=… target_account=… role=admin` */
function lineOf({ seq, created_at, event_type, outcome, metadata, ...ids }: AuditEvent): string {
  const { id: _, ip, ...parties } = ids
  const fields = Object.entries({ ...parties, ip, ...metadata }).filter(([, value]) => value !== null)
  const words = fields.map(([key, value]) => fieldText(key.replace(/_id$/, ''), value))
  const mark = outcome === 'failure' ? ' FAILED' : ''
  return `${created_at.slice(11, 19)} ${seq} ${printable(event_type)}${mark}${words.join('')}\n`
}

const ends: Readonly<Record<string, string>> = {
  revoked: 'the token was revoked',
  expired: 'the token expired',
  role_lost:
    'the account is no longer an admin, or a role now requires a second factor that its sign-in lacks',
  too_many_streams: 'the same token opened too many newer streams',
  token_scope_required: 'the scope of the token must be full, read_only or name audit_log_list',
  insufficient_permissions: 'the account of the token is not an admin',
  not_found: 'it is turned off on the server',
  transport_failed: 'what answers there is not Cellkeep',
}

const isOver = new Set(['revoked', 'expired', 'authentication_required'])

function refused(url: string, { reason }: AuditStreamError): StartError {
  const why = ends[reason] ?? meaningOf(reason as Reason).replace(/\.$/, '')
  const next = isOver.has(reason) ? ` Run \`cellkeep login --url ${url}\`, or set CELLKEEP_TOKEN.` : ''
  return new StartError(reason, `The audit stream of ${url} is not available: ${why}.${next}`, 1)
}
