/** An import of `node:http` reads all it exports, and so loads `fetch` and `WebSocket` too: 30 ms of each start. */
export const { createServer, STATUS_CODES } = process.getBuiltinModule('node:http')
