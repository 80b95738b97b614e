import { effect, useSignal } from '@preact/signals'
import {
  InfiniteQueryObserver,
  type Query,
  QueryCache,
  QueryClient,
  QueryObserver,
  type QueryObserverResult,
} from '@tanstack/query-core'
import { useEffect, useState } from 'preact/hooks'
import { CellkeepError } from '../../src/client/client.ts'
import { forgetSecrets } from '../ui/secret.tsx'
import { forgetToasts } from '../ui/toast.tsx'
import { call, type Input, type Name, type Output, type Refusal } from './client.ts'
import { forgetNames, renewNames } from './names.ts'
import { afterOutage, isOutage } from './outage.ts'
import { acting, mustEnrol, reader, sessionEnded } from './session.ts'

/** Worth another try: no answer, or the server says that it may work later. */
const isPassing = (error: unknown): boolean =>
  isOutage(error) || ['busy', 'timeout'].includes((error as Refusal).reason)
const ended = ['authentication_required', 'account_vanished']

export const noticeEnd = (error: unknown): void => {
  if (!(error instanceof CellkeepError)) return
  if (ended.includes(error.reason)) sessionEnded()
  if (error.reason === 'second_factor_enrolment_required') mustEnrol.value = true
}

export const queries = new QueryClient({
  queryCache: new QueryCache({
    onError: (error) => {
      noticeEnd(error)
      if (isOutage(error)) void afterOutage(readFailed)
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      gcTime: 300_000,
      retry: (count, error) => count < 3 && isPassing(error),
      retryDelay: (count) => (0.5 + Math.random() / 2) * 1000 * 2 ** count,
      networkMode: 'always',
    },
  },
})

const readFailed = (): void =>
  void queries.refetchQueries({ type: 'active', predicate: ({ state }) => isOutage(state.error) })

/** Reads stale data again when the page gets the focus. */
addEventListener(
  'focus',
  () => void queries.refetchQueries({ type: 'active', stale: true, predicate: isShort }),
)

/** Reads again what may have changed without notice. */
export const refreshAll = (): void => void queries.invalidateQueries({ predicate: isShort })

/** Nothing that one account has read remains for the next one, or after its session has ended. */
let before: string | undefined
effect(() => {
  const now = reader.value
  if (now !== before) {
    queries.clear()
    forgetNames()
    forgetSecrets()
    // Toasts are for the account that was signed in when they appeared.
    if (before) forgetToasts()
  }
  before = now
  mustEnrol.value = false
})

/** Repeats what was refused for lack of a second factor. */
export function factorAdded(): void {
  mustEnrol.value = false
  refreshAll()
}

/** The state that a list or a record is drawn from: the data, even if old, and the latest error. */
export type Loaded<T> = {
  data: T | undefined
  error: Refusal | null
  isLoading: boolean
  isFetching: boolean
  retry(): void
}

/** `fresh`: read each time it is shown. */
type Options = { enabled?: boolean; poll?: number; fresh?: boolean }

/** Reads by a method, and again when the answer is outdated. The component is drawn again when the answer changes. */
export const useCall = <M extends Name>(
  method: M,
  input: Input<M>,
  options: Options = {},
): Loaded<Output<M>> =>
  useRead([acting.value, method, input], ({ signal }) => call(method, input, acting.peek(), signal), options)

/** A count that a dialog shows before it asks: read anew each time, and undefined while it is read. */
export function useCount<M extends Name>(method: M, input: Input<M>): Loaded<Output<M>> {
  const counted = useCall(method, input, { fresh: true })
  return counted.isFetching ? { ...counted, data: undefined } : counted
}

/** What `useCall` does, for reads that are not methods, such as a route. */
export function useRead<T>(
  queryKey: readonly unknown[],
  queryFn: (context: { signal: AbortSignal }) => Promise<T>,
  { enabled = true, poll, fresh }: Options = {},
): Loaded<T> {
  const options = {
    queryKey,
    queryFn,
    enabled,
    ...(poll && { refetchInterval: poll }),
    ...(fresh && { staleTime: 0 }),
  }
  return loaded(useObserver<QueryObserverResult<T, Refusal>>(QueryObserver as never, options))
}

const loaded = <T>({
  data,
  error,
  isLoading,
  isFetching,
  refetch,
}: QueryObserverResult<T, Refusal>): Loaded<T> => ({
  data,
  error,
  isLoading,
  isFetching,
  retry: () => void refetch(),
})

/** Methods whose pages have a cursor. */
export type Paged = {
  [M in Name]: Output<M> extends { next_cursor: string | null } ? M : never
}[Name]
export type Pages<T> = Loaded<T[]> & { hasMore: boolean; more(): void }

/** The pages of a list so far, 200 rows at a time; `rows` picks the rows out of an answer. */
export function usePages<M extends Paged, T>(
  method: M,
  input: Omit<Input<M>, 'cursor' | 'limit'>,
  rows: (page: Output<M>) => readonly T[],
  { enabled = true, limit = 200 }: { enabled?: boolean; limit?: number } = {},
): Pages<T> {
  type Page = Output<M> & { next_cursor: string | null }
  const options = {
    queryKey: [acting.value, method, input, 'pages'],
    queryFn: ({ pageParam, signal }: { pageParam: unknown; signal: AbortSignal }) =>
      call(method, { ...input, limit, cursor: pageParam } as never, acting.peek(), signal),
    initialPageParam: null,
    getNextPageParam: (last: Page) => last.next_cursor,
    refetchOnMount: (query: Query) => isShort(query) || query.state.isInvalidated,
    refetchOnWindowFocus: isShort,
    refetchOnReconnect: false,
    enabled,
  }
  const result = useObserver<
    QueryObserverResult<{ pages: Page[] }, Refusal> & {
      hasNextPage: boolean
      isFetchingNextPage: boolean
      fetchNextPage(): Promise<unknown>
    }
  >(InfiniteQueryObserver as never, options)
  return {
    ...loaded(result as unknown as QueryObserverResult<T[], Refusal>),
    data: result.data?.pages.flatMap((page) => rows(page)),
    hasMore: result.hasNextPage,
    more: () => {
      if (result.hasNextPage && !result.isFetchingNextPage) void result.fetchNextPage()
    },
  }
}

/** Shows a change of a list before the service has answered; `spoil` of the method then reads the real state. */
export function editRows<M extends Paged, T>(
  method: M,
  input: Omit<Input<M>, 'cursor' | 'limit'>,
  name: string,
  change: (rows: T[]) => T[],
): void {
  const queryKey = [acting.peek(), method, input, 'pages']
  void queries.cancelQueries({ queryKey })
  queries.setQueryData<{ pages: Record<string, T[]>[] }>(queryKey, (old) => {
    if (!old) return old
    const rows = change(old.pages.flatMap((page) => page[name] ?? []))
    return { ...old, pages: old.pages.map((page, index) => ({ ...page, [name]: index === 0 ? rows : [] })) }
  })
}

type Observer<R> = {
  getOptimisticResult(options: unknown): R
  setOptions(options: unknown): void
  subscribe(hear: () => void): () => void
}

function useObserver<R>(
  Class: new (client: QueryClient, options: unknown) => Observer<R>,
  options: { queryKey: readonly unknown[]; enabled?: boolean },
): R {
  const defaulted = queries.defaultQueryOptions(options as never)
  const [observer] = useState(() => new Class(queries, defaulted))
  const changes = useSignal(0)
  // Reading the signal makes the component draw again on each change.
  changes.value
  useEffect(() => observer.subscribe(() => void (changes.value = changes.peek() + 1)), [observer])
  useEffect(() => observer.setOptions(defaulted), [JSON.stringify(options.queryKey), options.enabled])
  return observer.getOptimisticResult(defaulted)
}

/** Longer lists are not read again automatically: it would take as many calls as they have pages. */
const pagesMax = 3
/** Ten thousand rows, a small part of what the limiters allow. */
const wholeMax = 50
const pagesOf = ({ state: { data } }: Query): number =>
  (data as { pages?: unknown[] } | undefined)?.pages?.length ?? 1
const isShort = (query: Query): boolean => pagesOf(query) <= pagesMax
const isOf =
  (methods: readonly string[]) =>
  ({ queryKey }: Query): boolean =>
    methods.includes(queryKey[1] as string)

/**
 * Reads the answers of these methods again: at once if they are on screen, otherwise when they are shown again. A list
 * is read as far as it was, so that nobody loses the place, unless it is very long.
 */
export const spoil = (...methods: readonly (Name | 'status')[]): Promise<void> => readAgain(methods, wholeMax)

/** The same, for those who want to see the beginning of a list. */
export const startAgain = (...methods: readonly Name[]): void => void readAgain(methods, pagesMax)

/** Of a list of more than `most` pages only the beginning is kept. */
function readAgain(methods: readonly string[], most: number): Promise<void> {
  renewNames(methods)
  for (const query of queries.getQueryCache().findAll({ predicate: isOf(methods) })) {
    const { data } = query.state as { data?: { pages: unknown[]; pageParams: unknown[] } }
    if (data && pagesOf(query) > most)
      query.setData({ pages: data.pages.slice(0, pagesMax), pageParams: data.pageParams.slice(0, pagesMax) })
  }
  return queries.invalidateQueries({ predicate: isOf(methods) })
}

/** The same, but a long list stays as it is: nobody here has changed it, and somebody may be reading it. */
export function refresh(methods: readonly string[]): void {
  renewNames(methods)
  void queries.invalidateQueries({ predicate: (query) => isOf(methods)(query) && isShort(query) })
}

const due = new Set<Name>()
let timer: ReturnType<typeof setTimeout> | undefined
/** Min pause between two automatic reads. */
const pauseMs = 2_000
let last = 0

/** Reads again what is on screen: at once, or after the pause if there was a change a moment ago. */
export function spoilSoon(methods: readonly Name[]): void {
  for (const method of methods) due.add(method)
  if (timer) return
  timer = setTimeout(
    () => {
      timer = undefined
      last = Date.now()
      refresh([...due])
      due.clear()
    },
    Math.max(0, last + pauseMs - Date.now()),
  )
}
