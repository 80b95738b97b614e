/**
 * Importing `node:http` evaluates all its exports, which loads `fetch` and `WebSocket` and costs 30 ms of each start.
 */
export const { createServer, STATUS_CODES } = process.getBuiltinModule('node:http')
