import { remembered } from './remembered.ts'

/** `utc`, or empty for the zone of the browser. */
export const zone = remembered('zone')

/** How far the clock of the server is ahead of the browser's, which may be wrong by hours. */
let ahead = 0

/** The time on the server, which decides what has ended; in milliseconds. */
export const serverNow = (): number => Date.now() + ahead
/** Null never comes. */
export const isPast = (at: string | null): boolean => at !== null && Date.parse(at) <= serverNow()

/** `date`: from an answer that has just come. Below a minute, it may as well be the way of the answer. */
export function setServerNow(date: string | null): void {
  const by = Date.parse(date ?? '') - Date.now()
  if (!Number.isNaN(by)) ahead = Math.abs(by) < 60_000 ? 0 : by
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'narrow' })

/** A time in UTC, or moved into the zone of the browser. A formatter of Intl takes ten times as long, in each row. */
function iso(at: string, isUtc: boolean): string {
  const time = new Date(at)
  return new Date(isUtc ? time : time.getTime() - time.getTimezoneOffset() * 60_000).toISOString()
}

const minutes = (at: string, isUtc: boolean): string => iso(at, isUtc).slice(0, 16).replace('T', ' ')

/** `2026-11-22 09:14`. */
export const shortTime = (at: string): string => minutes(at, zone.value === 'utc')

/** `09:14:02`. */
export const clockTime = (at: string): string => iso(at, zone.value === 'utc').slice(11, 19)

/** In the format of a time field, in the zone that times are shown in. */
export const toField = (at: string): string => shortTime(at).replace(' ', 'T')

/** The value of such a field; null while it is incomplete. */
export function fromField(text: string): string | null {
  const ms = Date.parse(zone.value === 'utc' ? `${text}Z` : text)
  return Number.isNaN(ms) ? null : new Date(ms).toISOString()
}

export const zoneName = (): string =>
  zone.value === 'utc' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone

export const utcTime = (at: string): string => `${minutes(at, true)} UTC`

export const fullTime = (at: string): string => `${minutes(at, false)} (${utcTime(at)})`

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

/** `3 min ago`, `in 30 days`; within a minute `just now` or `now`. */
export function distance(at: string, now = serverNow()): string {
  const ms = Date.parse(at) - now
  const [unit, size] = units.find(([, size]) => Math.abs(ms) >= size) ?? ['day', 0]
  if (!size) return ms > 0 ? 'now' : 'just now'
  return relative.format(Math.trunc(ms / size), unit)
}

const week = 604_800_000

/** The distance within a week, otherwise the date. */
export const ago = (at: string, now = serverNow()): string =>
  Math.abs(Date.parse(at) - now) < week ? distance(at, now) : shortTime(at)
