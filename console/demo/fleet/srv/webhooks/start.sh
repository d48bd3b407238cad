#!/bin/sh
# Starts one webhooks worker. Called by the watchdog line in the crontab.
nohup /usr/local/bin/worktop worker --role webhooks --handlers console.demo.handlers:HANDLERS --lease 10 --lifetime 170 >/dev/null 2>&1 &
