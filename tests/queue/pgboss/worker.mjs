// A real pg-boss worker; see ../libraries.py.
import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const { PgBoss } = await import(process.env.PGBOSS)
const { connection, queue, queues, send = [], work = {}, boss: options = {} } = JSON.parse(process.env.OPTIONS)
const boss = new PgBoss({ ...connection, ...options })
boss.on('error', error => console.log('error', error.message))
boss.on('warning', () => {})

await boss.start()
for (const one of queues ?? []) await boss.createQueue(one.name, one)
for (const one of send) console.log('sent', await boss.send(one.name, one.data ?? {}, one.options ?? {}))
if (queue) {
  await boss.work(queue, { pollingIntervalSeconds: 0.5, includeMetadata: true, ...work }, async ([job]) => {
    console.log('begin', job.id, job.retryCount)
    while (job.data.until && !fs.existsSync(job.data.until)) await sleep(20)
    if (job.data.fail) throw new Error(job.data.fail)
    console.log('end', job.id, job.retryCount)
    return { by: process.pid }
  })
}
console.log('ready')
if (!queue) {
  await boss.stop({ graceful: true, timeout: 2000 })
  process.exit(0)
}
