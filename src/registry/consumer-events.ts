import type { z } from 'zod'

/**
 * The audit event types of a consumer with their metadata. Empty until a consumer declares what it registers as
 * `audit_events`:
 *
 *     declare module 'cellkeep' {
 *       interface ConsumerEvents extends EventsOf<typeof audit_events> {}
 *     }
 */
// biome-ignore lint/suspicious/noEmptyInterface: a consumer fills it.
export interface ConsumerEvents {}

/** The metadata by event type, inferred from the registered schemas. */
export type EventsOf<T extends Readonly<Record<string, z.ZodType | null>>> = {
  [K in keyof T]: T[K] extends z.ZodType ? z.input<T[K]> : null
}
