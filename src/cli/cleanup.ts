import { command } from './command.ts'
import { withService } from './with-service.ts'

export const cleanup = command({
  name: 'cleanup',
  summary: 'Remove what has expired, as the server does every CELLKEEP_CLEANUP_INTERVAL_S.',
  run: ({ out, io }) =>
    withService(io, async ({ operations }) => {
      const done = await operations.cleanUp()
      const {
        ran,
        expired_sessions,
        expired_tokens,
        expired_charges,
        expired_addresses,
        expired_offers,
        removed_cells,
        removed_audit_rows,
      } = done
      out.result(
        done,
        ran
          ? `Removed ${expired_sessions} sessions, ${expired_tokens} tokens, ${expired_charges} limiter charges, ${expired_addresses} sign-in addresses, ${removed_cells} deleted cells and ${removed_audit_rows} audit rows; ${expired_offers} offers expired.`
          : 'Another cleanup is running; this one did nothing.',
      )
    }),
})
