import type { App } from '../core/app.ts'
import { countAnswer } from '../core/tally.ts'
import type { RequestInfo } from '../http/jsonrpc.ts'
import { tenths } from '../observe/work.ts'
import type { Bound } from './bound.ts'

/** Writes the log lines of one socket, with their request ids. */
export class MessageLog {
  readonly #app: App
  readonly #bound: Bound
  readonly #opened = performance.now()
  #count = 0

  constructor(app: App, bound: Bound) {
    this.#app = app
    this.#bound = bound
  }

  nextId(): string {
    return `${this.#bound.request_id}.${++this.#count}`
  }

  /** `began`: the value of `performance.now()` at the start. */
  answered(request_id: string, status: number, began: number, trace: RequestInfo['trace']): void {
    const { config, log, tally } = this.#app
    const took = performance.now() - began
    countAnswer(tally, trace.reason, took)
    log.info(
      { request_id, path: config.ws_path, status, duration_ms: tenths(took), ip: this.#bound.ip, ...trace },
      'message',
    )
  }

  notOpened(err: unknown): void {
    const { request_id } = this.#bound
    this.#app.log.warn({ event: 'socket_failed', request_id, err }, 'a socket could not be opened')
  }

  failed(err: unknown): void {
    const { request_id } = this.#bound
    this.#app.log.error({ event: 'request_failed', request_id, err }, 'a message failed unexpectedly')
  }

  closed(code: number): void {
    const { request_id, account_id } = this.#bound
    const duration_ms = tenths(performance.now() - this.#opened)
    this.#app.log.info({ request_id, account_id, code, duration_ms }, 'socket closed')
  }
}
