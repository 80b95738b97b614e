import { remembered } from './remembered.ts'

/** `utc`, or empty for the zone of the browser. */
export const zone = remembered('zone')

const parts = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'short' })
const inUtc = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'short', timeZone: 'UTC' })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'narrow' })

/** `2026-11-22 09:14`. */
export const shortTime = (at: string): string => (zone.value === 'utc' ? inUtc : parts).format(new Date(at))

export const fullTime = (at: string): string =>
  `${parts.format(new Date(at))} (${inUtc.format(new Date(at))} UTC)`

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

/** `3 min ago`, `in 30 days`; within a minute `now`. */
export function distance(at: string, now = Date.now()): string {
  const ms = Date.parse(at) - now
  const [unit, size] = units.find(([, size]) => Math.abs(ms) >= size) ?? ['second', 0]
  return size ? relative.format(Math.trunc(ms / size), unit as 'day') : relative.format(0, 'second')
}

const week = 604_800_000

/** The distance within a week, later the date. */
export const ago = (at: string, now = Date.now()): string =>
  Math.abs(Date.parse(at) - now) < week ? distance(at, now) : shortTime(at)
