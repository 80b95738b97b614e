import { z } from 'zod'
import type { EventType } from '../events.ts'
import type { Reason } from '../reasons.ts'
import { parseInput } from '../wire/input.ts'
import type { App } from './app.ts'
import type { Fail } from './mutate.ts'
import { type Operating, type Operator, operate } from './operate.ts'

/**
 * Declarations of operator calls: what a process with access to the database may do without a credential.
 * `service.operations`, the CLI commands and their help derive from what `operation` returns.
 */

/** Called as `(app, input)`, or as `(app, input, operator)` if it changes something. */
export type Operation<F = (app: App, input: never, operator: Operator) => Promise<unknown>> = F & {
  readonly doc: string
  readonly input: z.ZodObject
  readonly errors: readonly Reason[]
  readonly command?: AnyCommand
}

type NoInput = z.ZodObject<Record<never, never>, z.core.$strict>

type CallOf<In, O, K> = [K] extends [never]
  ? string extends keyof In
    ? (app: App) => Promise<O>
    : Record<never, never> extends In
      ? (app: App, input?: In) => Promise<O>
      : (app: App, input: In) => Promise<O>
  : (app: App, input: In, operator: Operator) => Promise<O>

type Context<E extends Reason, K, S> = { app: App; fail: Fail<E> } & ([K] extends [never]
  ? unknown
  : S extends true
    ? { operator: Operator; operate: <T>(work: (tools: Operating) => Promise<T>) => Promise<T> }
    : Operating)

type Declaration<I extends z.ZodObject, O, E extends Reason, K, S, R> = {
  /** One line of help. */
  doc: string
  input?: I
  errors?: readonly E[]
  /** The audit event; the handler then runs in one transaction with its audit rows. Left out: nothing is audited. */
  event?: K
  /** The handler begins its own transactions with `operate`. */
  ownTransactions?: S
  /** Work to do before the transaction, such as hashing, and checks across fields. */
  refine?(input: z.output<I>, context: { app: App; fail: Fail<E> }): R | Promise<R>
  handler(input: R, context: Context<E, K, S>): Promise<O>
  /** Left out: the operation is a library call only. */
  command?: Command<z.input<I>, O>
}

export function operation<
  O,
  I extends z.ZodObject = NoInput,
  const E extends Reason = never,
  const K extends EventType = never,
  const S extends boolean = false,
  R = z.output<I>,
>(spec: Declaration<I, O, E, K, S, R>): Operation<CallOf<z.input<I>, O, K>> {
  const { doc, input = z.strictObject({}), errors = [], event, command } = spec
  const call = async (app: App, given: unknown = {}, operator?: Operator): Promise<O> => {
    const context = { app, fail: app.fail }
    const parsed = parseInput(input, given) as z.output<I>
    const refined = (spec.refine ? await spec.refine(parsed, context) : parsed) as R
    const handle = (tools: object): Promise<O> =>
      spec.handler(refined, { ...context, ...tools } as unknown as Context<E, K, S>)
    if (event === undefined) return await handle({})
    if (!operator) throw new TypeError('Say who acts: give `{ via }` as the second argument.')
    const begin = <T>(work: (tools: Operating) => Promise<T>): Promise<T> =>
      operate(app, event, operator, work)
    return await (spec.ownTransactions ? handle({ operator, operate: begin }) : begin(handle))
  }
  return Object.assign(call, { doc, input, errors, ...(command && { command }) }) as unknown as Operation<
    CallOf<z.input<I>, O, K>
  >
}

/** The CLI command of an operation. */
type Command<In = Record<string, unknown>, O = unknown> = {
  /** The words after `cellkeep`, such as `account set-email`; a flag tells apart two commands with the same words. */
  name: string
  /** The source of each input key, in the order of the usage line. */
  args?: { [K in keyof In]: Source }
  /** More help, below the usage line. */
  details?: string
  /** The question asked on a terminal before the command runs; `--yes` skips it. */
  confirm?: string
  /** Added to the `--json` output, beside the ids of the input and the result. */
  done?: Record<string, unknown> | ((input: In) => Record<string, unknown>)
  /** Says for human readers what was done. */
  phrase?(result: O, said: In & Said): Phrase
  /** True for a result that is no success: it is printed, and the exit code is 1. */
  failed?(result: O): boolean
  /** Shows a result that is a list, or a page of one, as a table. */
  table?: Table<RowOf<O>>
  /** A streamed result is written as JSON lines; this makes the summary on standard error from the last one. */
  lines?(last: StreamedOf<O> | undefined, input: In): Record<string, unknown>
}

/** A command of any input and result type, as the CLI runs it. */
export type AnyCommand = Omit<Command, 'table' | 'phrase' | 'failed' | 'lines'> & {
  table?: Table<Record<string, unknown>>
  phrase?(result: unknown, said: Said): Phrase
  failed?(result: unknown): boolean
  lines?(last: unknown, input: Record<string, unknown>): Record<string, unknown>
}

/** What `phrase` gets besides the input. */
export type Said = {
  /** The username of the account that was named. */
  who: string
  words: Words
}
export type Cell = string | number | boolean | null
type Part = string | Readonly<Record<string, Cell>>
/** A sentence, a block of labelled values, or several of these. */
export type Phrase = Part | readonly Part[]
export type Table<Row> = { columns: Columns<Row>; none: string }
/** Column titles, each with a key of the row or a function that reads the value; `now` is by the clock of the database. */
export type Columns<Row> = Readonly<Record<string, (keyof Row & string) | ((row: Row, now: number) => Cell)>>

type RowOf<O> = O extends readonly (infer Row)[]
  ? Row
  : { [K in keyof O]: O[K] extends readonly (infer Row)[] ? Row : never }[keyof O]
type StreamedOf<O> = O extends AsyncIterable<infer Row> ? Row : never

/**
 * A usage text such as `ADDRESS`, `--email ADDRESS`, `--keeper` or `ADDRESS | --none` (null), or one of the
 * sources below. Brackets are not written here: optional keys of the schema get them.
 */
export type Source = string | NamedSource | ParsedSource | { readonly fixed: unknown }

/** A value that the CLI looks up or asks for: see `src/cli/shell/choose.ts`. */
type NamedSource = { readonly usage: readonly string[]; readonly from: From }
export type From = 'account' | 'actor' | 'holder' | 'grant' | 'password'
/** Several words that make one value; `parse` throws a `TypeError` that says what is wrong with them. */
type ParsedSource = { readonly usage: string; parse(words: Words): unknown }
/** The words given, by their name in the usage text, such as `REF` or `--days`. */
export type Words = Readonly<Record<string, string | true | undefined>>

/** An account by id, username or e-mail. */
export const account = { usage: ['REF'], from: 'account' } as const
/** The live actor of an account; it must be named only if the account has several. */
export const actor = { usage: ['REF', '[--actor ACTOR]'], from: 'actor' } as const
/** The same, but removed actors count too. */
export const holder = { usage: ['REF', '[--actor ACTOR]'], from: 'holder' } as const
/** A grant of the holder, by its role and scope. */
export const grant = { usage: ['ROLE', '[--scope-kind KIND --scope-id ID]'], from: 'grant' } as const
/** Asked for on a terminal, otherwise read from standard input. */
export const password = { usage: [], from: 'password' } as const

/** `1 token`, `2 tokens`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
