import { ServiceError, StartError } from '../errors.ts'

/** A span of OpenTelemetry. */
type ApiSpan = {
  setAttribute(name: string, value: string | number): unknown
  setStatus(status: { code: number }): unknown
  spanContext(): SpanContext
  end(): void
}
type SpanContext = { traceId: string; spanId: string; traceFlags: number; isRemote?: boolean }
type SpanOptions = {
  kind?: number
  root?: boolean
  links?: { context: SpanContext }[]
  attributes?: Attributes
}
type Attributes = Record<string, string | number>

/** The part of the module `@opentelemetry/api` that is used. */
export type TraceApi = {
  readonly trace: {
    getTracer(
      name: string,
      version?: string,
    ): { startSpan(name: string, options?: SpanOptions, context?: never): ApiSpan }
    getSpan(context: never): ApiSpan | undefined
    setSpan(context: never, span: never): object
    setSpanContext(context: never, span: SpanContext): object
  }
  readonly context: { active(): object; with<T>(context: never, run: () => T): T }
  readonly ROOT_CONTEXT: object
}

type Span = Pick<ApiSpan, 'setAttribute'>

export type Tracer = {
  /**
   * Runs a request as a span. With `isTrusted` it continues the trace of its `traceparent`; otherwise that trace is
   * only linked, because a stranger could fill somebody else's trace.
   */
  server<T>(
    name: string,
    sent: { traceparent: string | undefined; isTrusted: boolean },
    run: (span: Span) => Promise<T>,
  ): Promise<T>
  /** Runs work as a span below the current one. Ends with an error if it rejects. */
  span<T>(name: string, attributes: Attributes, run: (span: Span) => Promise<T>): Promise<T>
  /** A span without child spans, ended by the caller; undefined if no other span is open. */
  begin(name: string, attributes: Attributes): { end(): void } | undefined
  /** The fields of a log line. */
  ids(): { trace_id: string; span_id: string } | undefined
}

const form = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/
/** Kinds and states have these numbers in every version of the interface. */
const [serverKind, failed] = [1, 2]

export function createTracer(api: TraceApi, version: string): Tracer {
  const { trace, context, ROOT_CONTEXT } = api
  if (typeof trace?.getTracer !== 'function' || typeof context?.active !== 'function')
    throw new StartError(
      'configuration',
      'The option traces is not the module @opentelemetry/api. Pass `api` of `import * as api from "@opentelemetry/api"`.',
      78,
    )
  const tracer = trace.getTracer('cellkeep', version)
  const active = (): never => context.active() as never
  const current = (): ApiSpan | undefined => trace.getSpan(active())

  async function within<T>(span: ApiSpan, below: object, run: (span: Span) => Promise<T>): Promise<T> {
    try {
      return await context.with(trace.setSpan(below as never, span as never) as never, () => run(span))
    } catch (error) {
      // Omits the text of the error, which may hold values.
      if (error instanceof ServiceError) span.setAttribute('cellkeep.reason', error.data.reason)
      if (!(error instanceof ServiceError) || error.status >= 500) span.setStatus({ code: failed })
      throw error
    } finally {
      span.end()
    }
  }

  return {
    server: (name, { traceparent, isTrusted }, run) => {
      const [, traceId, spanId, flags] = form.exec(traceparent ?? '') ?? []
      const remote =
        traceId && spanId
          ? { traceId, spanId, traceFlags: Number.parseInt(flags as string, 16), isRemote: true }
          : undefined
      // An application around the service may have opened the span of this request already.
      const own = current() ? context.active() : ROOT_CONTEXT
      const below =
        remote && isTrusted && own === ROOT_CONTEXT ? trace.setSpanContext(own as never, remote) : own
      const links = remote && below === own ? [{ context: remote }] : []
      return within(tracer.startSpan(name, { kind: serverKind, links }, below as never), below, run)
    },
    span: (name, attributes, run) =>
      within(tracer.startSpan(name, { attributes }, active()), context.active(), run),
    begin: (name, attributes) => (current() ? tracer.startSpan(name, { attributes }, active()) : undefined),
    ids: () => {
      const ids = current()?.spanContext()
      return ids && { trace_id: ids.traceId, span_id: ids.spanId }
    },
  }
}
