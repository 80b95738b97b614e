import { useEffect } from 'preact/hooks'
import type { LiveEvents } from '../../src/client/live.ts'
import { hearAudit } from './audit-feed.ts'
import type { Name } from './client.ts'
import { spoilSoon } from './query.ts'
import { server } from './server.ts'

const offers = ['role_grant_offer_list', 'role_grant_offer_history'] as const
const accounts = ['admin_account_list', 'admin_account_get'] as const

/** The notifications and events of an account, and the methods whose answers they make outdated. */
export const refreshedBy: Partial<Record<keyof LiveEvents, readonly Name[]>> = {
  role_grant_offer_received: offers,
  role_grant_offer_retracted: offers,
  role_grant_offer_accepted: [...offers, ...accounts],
  role_grant_offer_declined: [...offers, ...accounts],
  role_grant_offer_supersede: [...offers, ...accounts],
  role_grant_revoke: [...accounts, 'cell_list', 'cell_get'],
}

/** The same for rows of the audit log, by the prefix of their type. The first match counts. */
const refreshedByRow: readonly (readonly [prefix: string, methods: readonly Name[]])[] = [
  ['role_grant_offer_', ['role_grant_offer_history', ...accounts]],
  ['role_grant_', ['role_holder_list', 'audit_log_role_grant_history', ...accounts]],
  ['account_', [...accounts, 'actor_lookup', 'admin_session_list', 'admin_token_list']],
  ['actor_', [...accounts, 'actor_lookup']],
  ['signup', ['admin_account_list', 'invite_list']],
  ['session_', ['admin_session_list', ...accounts]],
  ['log', ['admin_session_list', 'admin_account_get']],
  ['password_', ['admin_session_list', 'admin_token_list', ...accounts]],
  ['token_', ['admin_token_list', 'admin_account_get']],
  ['factor_', ['admin_account_get']],
  ['ticket_', ['admin_ticket_list', 'admin_message_list']],
  ['invite_', ['invite_list']],
  ['app_settings_update', ['app_settings_get']],
  ['cell_grant_', ['cell_grant_list', 'cell_access_explain', 'cell_audit_list', 'cell_get']],
  ['cell_item_', ['cell_item_list', 'cell_audit_list']],
  ['cell_field_', ['cell_field_list', 'cell_audit_list']],
  ['cell_', ['cell_get', 'cell_list', 'cell_audit_list']],
]

/**
 * A hidden tab soon closes the stream, because a browser has few connections for all its tabs; what it shows is read
 * again when it gets the focus.
 */
const hiddenMs = 10_000

/** Keeps the data of a page fresh by the audit log, which only admins receive. */
export function useRefresh(isOn: boolean): void {
  useEffect(() => {
    if (!isOn || !server.features.audit_stream) return
    let leave: (() => void) | undefined
    const listen = (): void => {
      leave ??= hearAudit({
        item: (item) => {
          if (item.type !== 'event' || item.params.outcome === 'failure') return
          const { event_type } = item.params
          const found = refreshedByRow.find(([prefix]) => event_type.startsWith(prefix))
          if (found) spoilSoon(found[1])
        },
      })
    }
    const end = (): void => {
      leave?.()
      leave = undefined
    }
    let timer: ReturnType<typeof setTimeout> | undefined
    const turn = (): void => {
      clearTimeout(timer)
      if (document.hidden) timer = setTimeout(end, hiddenMs)
      else listen()
    }
    turn()
    document.addEventListener('visibilitychange', turn)
    return () => {
      document.removeEventListener('visibilitychange', turn)
      clearTimeout(timer)
      end()
    }
  }, [isOn])
}
