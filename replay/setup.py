"""Tenants, tokens, assets, prices and pools of the demo."""
import datetime
import sys
import time

from tasks import TENANTS

# A whole node with 8 GPUs, amortized over 5 years: round figures of 2025 list prices, for the demo.
ASSET_OF_MODEL = {
    "A100": {"cost": "150000", "salvage": "15000", "support_per_year": "12000"},
    "H100": {"cost": "290000", "salvage": "29000", "support_per_year": "23000"},
    "L40S": {"cost": "95000", "salvage": "9500", "support_per_year": "7600"},
}
PRICES = {
    "time_zone": "UTC",
    "pue": [{"from": "2026-01-01T00:00:00Z", "value": "1.4"}],
    "energy_tariff": [{"from": "2026-01-01T00:00:00Z", "rules": [
        {"hours": "06:00-22:00", "per_kwh": "0.28"}, {"hours": "22:00-06:00", "per_kwh": "0.19"}]}],
    "energy_split": "allocation",
    "share_basis": "compute",
}
# As many GPUs as there are: who gets them is the scheduler's to say, and what is idle is lent.
QUOTA = {"gpus": 24, "cpu": "8", "memory": "64Gi", "pods": 200}


def assets(nodes):
    """One asset a node, with the GPUs that its agent reported."""
    rows = []
    for node in nodes:
        kind = next((k for k in ASSET_OF_MODEL if k in node["model"]), "L40S")
        rows.append({
            "id": node["name"],
            "gpus": [{"id": d["uuid"], "model": node["model"], "slices": 1} for d in node["devices"]],
            "in_service": "2026-01-01T00:00:00Z", "life_years": 5, "amortization": "straight-line",
            "node_to_gpu": "equal", **ASSET_OF_MODEL[kind],
        })
    return {"currency": "EUR", "assets": rows}


def pools(start):
    """Network, storage and people of the platform: 60 EUR a day, shared by direct cost."""
    day = start.replace(hour=0, minute=0, second=0, microsecond=0)
    end = day + datetime.timedelta(days=2)
    return {"pools": [{"id": "platform", "cost": "120.00", "from": day.strftime("%Y-%m-%dT%H:%M:%SZ"),
                       "to": end.strftime("%Y-%m-%dT%H:%M:%SZ"), "rule": "direct-cost"}],
            "idle_rule": "keep"}


def nodes_with_gpus(admin, node_count, needed, patience_s):
    """Those that have told of GPUs: all node_count at once, or after patience_s at least needed."""
    deadline = time.monotonic() + patience_s
    while True:
        nodes = [n for n in admin.pages("/v1/nodes") if n.get("devices")]
        if len(nodes) >= node_count:
            return nodes
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    found = f"{len(nodes)} of {node_count} nodes have reported GPUs within {patience_s} s"
    if len(nodes) < needed:
        raise SystemExit(f"replay: {found}; see the logs of the agents: "
                         "kubectl -n gpuaas-system logs -l app.kubernetes.io/name=gpuaas-agent")
    print(f"replay: {found}; going on with these", file=sys.stderr)
    return nodes


def prepare(admin, node_count, needed=None, patience_s=60):
    """Makes what is absent; returns the nodes and the token of one member a tenant."""
    nodes = nodes_with_gpus(admin, node_count, node_count if needed is None else needed, patience_s)
    start = datetime.datetime.now(datetime.timezone.utc)
    for path, body in (("/v1/assets", assets(nodes)), ("/v1/prices", PRICES), ("/v1/pools", pools(start))):
        admin.post(path, body)
    existing = {t["name"] for t in admin.pages("/v1/tenants")}
    tokens = {}
    for tenant in TENANTS:
        if tenant not in existing:
            admin.post("/v1/tenants", {"name": tenant, "display_name": f"Team {tenant}", "quota": QUOTA})
        admin.post(f"/v1/tenants/{tenant}/members", {"user": f"{tenant}-ci", "role": "member"})
        tokens[tenant] = admin.post("/v1/tokens", {
            "user": f"{tenant}-ci", "tenant": tenant, "role": "member", "expires_in": "1d",
            "note": "replay"})["token"]
    return nodes, tokens
