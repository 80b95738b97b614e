/** The public API of the library. */
export type { Actions } from './actions.ts'
export type { Cell } from './cells/cells.ts'
export { type CellReader, type CellTier, type CellWriter, cells, visibleCells } from './cells/own-methods.ts'
export type { ConfigOptions } from './config/config.ts'
export { defineConfig } from './config/file.ts'
export { mutation, query } from './core/action.ts'
export type { Work } from './core/mutate.ts'
export { recorded } from './core/mutate.ts'
export type { Operator } from './core/operate.ts'
export type { TransactionOptions } from './core/transaction.ts'
export { sql } from './db/sql.ts'
export { ServiceError, StartError } from './errors.ts'
export { createServer, nodeListener, type ServerOptions } from './http/node.ts'
export type { Log, LogLine } from './log/log.ts'
export type { Operations } from './operations.ts'
export type * from './registry/consumer-events.ts'
export type { AuthorizeOffer, OfferQuestion } from './registry/hooks.ts'
export { CellDataIssues, type CellHooks } from './registry/hooks.ts'
export {
  type CallOptions,
  createService,
  type MethodEntry,
  type Service,
  type ServiceOptions,
} from './service.ts'
export type { Offer } from './wire/offer.ts'
