import type { z } from 'zod'
import { refusal } from '../errors.ts'
import { badTextIssue, toIssues } from './issues.ts'
import { withRules } from './rules.ts'

/** Parses the input of a call within this process; refuses it as RPC does, with `invalid_params`. */
export function parseInput<S extends z.ZodType>(schema: S, input: unknown): z.output<S> {
  const bad = badTextIssue(input)
  if (bad) throw refusal('invalid_params', { issues: [bad] })
  const parsed = schema.safeParse(input, withRules)
  if (!parsed.success) throw refusal('invalid_params', { issues: toIssues(parsed.error) })
  return parsed.data
}

/** True for `{…}`, even from another realm; false for arrays, promises and class instances. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
