module gpuaas/openb-orders

go 1.26
