import { z } from 'zod'
import { type Reason, refusal } from '../errors.ts'
import type { EventType } from '../events.ts'
import { parseInput } from '../wire/input.ts'
import type { App } from './app.ts'
import type { Fail } from './mutate.ts'
import { type Operating, type Operator, operate } from './operate.ts'

/**
 * Declarations of operator calls: what a process that holds the database may do without a credential.
 * `service.operations`, the commands and their help derive from what `operation` returns.
 */

/** Called as `(app, input)`, or `(app, input, operator)` where it changes something. */
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
  /** The audit event. The handler then runs in one transaction with its rows; left out: nothing is audited. */
  event?: K
  /** The handler begins its own transactions, by `operate`. */
  ownTransactions?: S
  /** Work before the transaction, such as hashing; and rules across fields. */
  refine?(input: z.output<I>, context: { app: App; fail: Fail<E> }): R | Promise<R>
  handler(input: R, context: Context<E, K, S>): Promise<O>
  /** Left out: there is only the library call. */
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
    const context = { app, fail: refusal }
    const parsed = parseInput(input, given) as z.output<I>
    const refined = (spec.refine ? await spec.refine(parsed, context) : parsed) as R
    const handle = (tools: object): Promise<O> =>
      spec.handler(refined, { ...context, ...tools } as unknown as Context<E, K, S>)
    if (event === undefined) return await handle({})
    const by = operator as Operator
    const begin = <T>(work: (tools: Operating) => Promise<T>): Promise<T> => operate(app, event, by, work)
    return await (spec.ownTransactions ? handle({ operator: by, operate: begin }) : begin(handle))
  }
  return Object.assign(call, { doc, input, errors, ...(command && { command }) }) as unknown as Operation<
    CallOf<z.input<I>, O, K>
  >
}

/** How an operation is called from the shell. */
export type Command<In = Record<string, unknown>, O = unknown> = {
  /** Its words after `cellkeep`, such as `account set-email`; a flag among them tells two with the same words apart. */
  name: string
  /** Where each key of the input comes from, in the order of the usage line. */
  args?: { [K in keyof In]: Source }
  /** More help, below the usage line. */
  details?: string
  /** What a terminal is asked before it is done; `--yes` answers it. */
  confirm?: string
  /** With `--json`, beside the ids of the input and the result. */
  done?: Record<string, unknown> | ((input: In) => Record<string, unknown>)
  /** What was done, for people. */
  phrase?(result: O, said: In & Said): Phrase
  /** A result that is a list, or a page with one, is shown as a table. */
  table?: { columns: Columns<RowOf<O>>; none: string }
  /** A result that is a stream is written as JSON lines; this is said of the last one on standard error. */
  lines?(last: StreamedOf<O> | undefined): Record<string, unknown>
}

// biome-ignore lint/suspicious/noExplicitAny: commands of any input and result stand in one table.
export type AnyCommand = Command<any, any>

/** What a phrase knows beside the input. */
export type Said = {
  /** The username of the account that was named. */
  who: string
  words: Words
}
export type Cell = string | number | boolean | null
type Part = string | Readonly<Record<string, Cell>>
/** A sentence, labelled values one below the other, or several of these. */
export type Phrase = Part | readonly Part[]
/** By title: the key of a row, or what to read from it. */
export type Columns<Row> = Readonly<Record<string, (keyof Row & string) | ((row: Row) => Cell)>>

type RowOf<O> = O extends readonly (infer Row)[]
  ? Row
  : { [K in keyof O]: O[K] extends readonly (infer Row)[] ? Row : never }[keyof O]
type StreamedOf<O> = O extends AsyncIterable<infer Row> ? Row : never

/**
 * A usage text such as `ADDRESS`, `--email ADDRESS`, `--keeper`, `ADDRESS | --none` (which is null); brackets
 * come from the schema. Or one of the sources below.
 */
export type Source = string | NamedSource | ParsedSource | { readonly fixed: unknown }

/** What the command line finds out by itself: `src/cli/choose.ts`. */
export type NamedSource = { readonly usage: readonly string[]; readonly from: From }
export type From = 'account' | 'actor' | 'holder' | 'grant' | 'password'
/** Words that together are one value; throws a `TypeError` that says what is wrong with them. */
export type ParsedSource = { readonly usage: string; parse(words: Words): unknown }
/** What was given, by the word of the usage text: `REF`, `--days`. */
export type Words = Readonly<Record<string, string | true | undefined>>

/** An account by id, username or e-mail. */
export const account = { usage: ['REF'], from: 'account' } as const
/** The live actor of an account; only where it has several must one be named. */
export const actor = { usage: ['REF', '[--actor ACTOR]'], from: 'actor' } as const
/** Likewise, also a removed one. */
export const holder = { usage: ['REF', '[--actor ACTOR]'], from: 'holder' } as const
/** A grant of the holder, by its role and scope. */
export const grant = { usage: ['ROLE', '[--scope-kind KIND --scope-id ID]'], from: 'grant' } as const
/** Asked for on a terminal, else read from standard input. */
export const password = { usage: [], from: 'password' } as const

/** `1 token`, `2 tokens`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
