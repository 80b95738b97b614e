import type { EventsOf, NotificationsOf, ReasonsOf } from 'cellkeep'
import { z } from 'zod'

const page_id = z.uuid()

export const reasons = { page_locked: { status: 409, message: 'Somebody else edits this page.' } }
export const audit_events = { page_lock: z.strictObject({ page_id, locked: z.boolean() }) }
export const notifications = { page_changed: z.strictObject({ page_id, version: z.int() }) }

declare module 'cellkeep' {
  interface ConsumerReasons extends ReasonsOf<typeof reasons> {}
  interface ConsumerEvents extends EventsOf<typeof audit_events> {}
  interface ConsumerNotifications extends NotificationsOf<typeof notifications> {}
}
