import type { z } from 'zod'

/**
 * The names that a consumer adds, for the compiler. Empty until the consumer declares what it registers:
 *
 *     import type { EventsOf, NotificationsOf, ReasonsOf } from 'cellkeep'
 *
 *     declare module 'cellkeep' {
 *       interface ConsumerEvents extends EventsOf<typeof audit_events> {}
 *       interface ConsumerReasons extends ReasonsOf<typeof reasons> {}
 *       interface ConsumerNotifications extends NotificationsOf<typeof notifications> {}
 *     }
 */

/** The audit event types of a consumer with their metadata. */
// biome-ignore lint/suspicious/noEmptyInterface: a consumer fills it.
export interface ConsumerEvents {}

/** The reasons of a consumer. */
// biome-ignore lint/suspicious/noEmptyInterface: a consumer fills it.
export interface ConsumerReasons {}

/** The notifications of a consumer with their params. */
// biome-ignore lint/suspicious/noEmptyInterface: a consumer fills it.
export interface ConsumerNotifications {}

/** A reason of a consumer. */
export type ReasonSpec = {
  /** The HTTP status, 400 to 599. */
  readonly status: number
  /** The message of the JSON-RPC error, for people. */
  readonly message: string
}

/** The metadata by event type, inferred from the registered schemas. */
export type EventsOf<T extends Readonly<Record<string, z.ZodType | null>>> = {
  [K in keyof T]: T[K] extends z.ZodType ? z.input<T[K]> : null
}

/** The registered reasons. */
export type ReasonsOf<T extends Readonly<Record<string, ReasonSpec>>> = { [K in keyof T]: ReasonSpec }

/** The params by notification, inferred from the registered schemas. */
export type NotificationsOf<T extends Readonly<Record<string, z.ZodType>>> = {
  [K in keyof T]: z.input<T[K]>
}
