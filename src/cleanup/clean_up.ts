import { z } from 'zod'
import { counted, operation } from '../core/operation.ts'
import { sweep } from './cleanup.ts'

export const cleanUp = operation({
  doc: 'Remove what has expired, as the server does every CELLKEEP_CLEANUP_INTERVAL_S seconds.',
  input: z.strictObject({ signal: z.instanceof(AbortSignal).optional() }),
  handler: (options, { app }) => sweep(app, options),
  command: {
    name: 'cleanup',
    phrase: (done) =>
      done.ran
        ? `Removed ${counted(done.expired_sessions, 'session')}, ${counted(done.expired_tokens, 'token')}, ${counted(done.expired_charges, 'limiter charge')}, ${done.expired_addresses} sign-in address${done.expired_addresses === 1 ? '' : 'es'}, ${counted(done.removed_tickets, 'link')}, ${counted(done.removed_messages, 'message')}, ${counted(done.removed_cells, 'deleted cell')} and ${counted(done.removed_audit_rows, 'audit row')}; ${counted(done.expired_offers, 'offer')} expired.`
        : 'Another cleanup is running, so this one did nothing.',
  },
})
